// Fidelity fits the transport's model to times measured on real machines, and prints, as Markdown, how far its
// predictions are off: also of worlds and shapes that the fit has not seen.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"
	"runtime"
)

func main() {
	log.SetFlags(0)
	out := flag.String("o", "", "also write it to this `file`")
	flag.Parse()
	var text bytes.Buffer
	both := io.MultiWriter(os.Stdout, &text)
	if err := report(both, folder()); err != nil {
		log.Fatal("fidelity: ", err)
	}
	if *out != "" {
		if err := os.WriteFile(*out, text.Bytes(), 0o644); err != nil {
			log.Fatal("fidelity: ", err)
		}
	}
}

// folder is where the measurements are: beside this file.
func folder() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Dir(file)
}

// report runs all comparisons.
func report(w io.Writer, folder string) error {
	fmt.Fprint(w, introduction)
	if err := collectives(w, filepath.Join(folder, "h200_nccl.csv")); err != nil {
		return err
	}
	for _, compare := range []func(io.Writer, string) error{another, messages, products, convolutions, attention, recurrent, layers, overlap} {
		if err := compare(w, folder); err != nil {
			return err
		}
	}
	return nil
}

const introduction = `# How far predictions are off

` + "`make fidelity`" + ` writes this file. It fits the coefficients of a transport (see DESIGN.md) to the measurements in
benches/fidelity, and compares predictions with them. An error is |predicted / measured − 1|; cells are mean / median /
95th percentile, in percent. Two machines of the same kind are themselves 5.2 / 2.2 / 22.6 apart.

The constants of the library that a fit does not touch (sizes of chunks and slices, numbers of channels and threads, the
model by which it chooses) are NCCL's own. Coefficients that the data do not determine stay near the values that the fit
starts from (ccl/calibrate/base.yaml), which were chosen with the 2, 3 and 4 GPUs of this machine in view.
`
