// Under the mouse a collective is lit on all ranks, and a box says what it is.
const about = JSON.parse(document.getElementById("collectives").textContent);
const box = document.getElementById("tip");
for (const chart of document.querySelectorAll(".timeline")) {
  let lit = [];
  const dark = () => { lit.forEach(bar => bar.classList.remove("hot")); lit = []; chart.classList.remove("dim"); box.style.display = "none"; };
  chart.addEventListener("mouseover", event => {
    dark();
    const number = event.target.dataset.c;
    if (number === undefined) return;
    lit = [...chart.querySelectorAll(`[data-c="${number}"]`)];
    lit.forEach(bar => bar.classList.add("hot"));
    chart.classList.add("dim");
    box.textContent = about[number];
    box.style.display = "block";
  });
  chart.addEventListener("mousemove", event => {
    box.style.left = Math.min(event.clientX + 14, innerWidth - box.offsetWidth - 8) + "px";
    box.style.top = Math.min(event.clientY + 16, innerHeight - box.offsetHeight - 8) + "px";
  });
  chart.addEventListener("mouseleave", dark);
}
