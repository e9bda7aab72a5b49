package calibrate_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/torchemu/torchemu/ccl"
	"github.com/torchemu/torchemu/ccl/calibrate"
	"github.com/torchemu/torchemu/torchemu/dtype"
	"github.com/torchemu/torchemu/torchemu/network"
	"github.com/torchemu/torchemu/torchemu/topology"
)

// Every kind of mistake in a file of measurements, with the whole text that a user sees.
func TestParseProblems(t *testing.T) {
	const header = "collective,world,size,us\n"
	for _, c := range []struct{ name, text, want string }{
		{"empty", "", "f.csv:1:1: there are no measurements: neither CSV with a header nor what nccl-tests prints"},
		{"only a header", header, "f.csv:1:1: there are no measurements below the header"},
		{"another column", "collective,world,size,us,colour\n", `f.csv:1:26: "colour" is no column of measurements; the columns are collective, world, size, us, variant, dtype, calls, bytes`},
		{"a column twice", "collective,world,world,size,us\n", "f.csv:1:18: the column world is there twice"},
		{"no times", "collective,world,size\n", "f.csv:1:1: the column us is missing"},
		{"collective", header + "all_reduce,2,8,1\nallsum,2,8,1\n", `f.csv:3:1: unknown collective "allsum": choose one of all_reduce, all_gather, reduce_scatter, broadcast, reduce, gather, scatter, all_to_all`},
		{"one rank", header + "all_reduce,1,8,1\n", `f.csv:2:12: world must be a whole number from 2 to 4096, not "1"`},
		{"size", header + "all_reduce,2,1e3,1\n", `f.csv:2:14: size must be a whole number from 1 to 4398046511104, not "1e3"`},
		{"time", header + "all_reduce,2,8,-1\n", `f.csv:2:16: us must be a time in µs above 0, not "-1"`},
		{"not a time", header + "all_reduce,2,8,NaN\n", `f.csv:2:16: us must be a time in µs above 0, not "NaN"`},
		{"short row", header + "all_reduce,2,8\n", "f.csv:2:1: the row and the header must have as many fields, not 3 and 4"},
		{"quote", header + "all_reduce,2,\"8,1\n", "f.csv:2:19: extraneous or missing \" in quoted-field"},
		{"variant", "variant,collective,world,size,us\nquick,all_reduce,2,8,1\n", `f.csv:2:1: variant "quick": it must be default, or ring or tree with simple, ll128 or ll, such as ring_ll`},
		{"dtype", "collective,world,size,us,dtype\nall_reduce,2,8,1,f17\n", `f.csv:2:18: "f17" is no dtype that is known`},
		{"nccl-tests without a name", "# nThread 1\n  8 2 float sum -1 10.1 0 0 0\n", "f.csv:2:3: which collective this is stands neither in a comment above (all_reduce_perf) nor in the file's name"},
		{"nccl-tests without ranks", "# all_reduce_perf\n  8 2 float sum -1 10.1 0 0 0\n", "f.csv:2:3: how many ranks there were is not known: 0 lines above begin with # Rank"},
		{"nccl-tests cut short", "# all_reduce_perf\n 8 2 float\n", "f.csv:2:2: a row of nccl-tests has at least 8 columns, this one 3"},
		{"nccl-tests time", "# all_reduce_perf\n# Rank 0 a\n# Rank 1 b\n 8 2 float sum -1 soon 0 0 0\n", `f.csv:4:19: the time must be in µs and above 0, not "soon"`},
	} {
		_, err := calibrate.Parse("f.csv", []byte(c.text))
		if err == nil || err.Error() != c.want {
			t.Errorf("%s:\ngot  %v\nwant %s", c.name, err, c.want)
		}
	}
}

func TestParseNCCLTests(t *testing.T) {
	const text = `# nccl-tests version 2.17.6
# Collective test starting: alltoall_perf
# nThread 1 nGpus 2 minBytes 8 maxBytes 134217728 step: 2(factor) warmup iters: 5 iters: 20 agg iters: 1 validation: 1 graph: 0
#
# Using devices
#  Rank  0 Group  0 Pid   1234 on       host device  0 [0000:0a:00] NVIDIA H200
#  Rank  1 Group  0 Pid   1234 on       host device  1 [0000:18:00] NVIDIA H200
#
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
           0             0      half    none      -1    10.01    0.00    0.00      0    10.02    0.00    0.00    N/A
        1024           256      half    none      -1    12.34    0.08    0.04      0    11.98    0.09    0.04    N/A
# Out of bounds values : 0 OK
`
	rows, err := calibrate.Parse("run.txt", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprint(rows), "[{all_to_all 2 1024 12.34 default 2 20}]"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// truth is a transport that is off the base's everywhere.
func truth() *topology.Transport {
	t := calibrate.Base().Transport().Clone()
	s := t.SIP
	s.Launch, s.Skew = s.Launch*13/10, s.Skew*7/10
	for k, p := range s.Protocols {
		factor := 0.8 + 0.1*float64(k)
		p.Hop = int64(float64(p.Hop) * factor)
		p.Bandwidth = int64(float64(p.Bandwidth) / factor)
		p.Start = int64(float64(p.Start) * 1.2)
	}
	s.P2P.Start = s.P2P.Start * 8 / 10
	return t
}

// measured are times of a machine that is as truth says.
func measured(t *testing.T, worlds ...int) []calibrate.Row {
	t.Helper()
	library, err := ccl.LoadLibrary("nccl-2.28")
	if err != nil {
		t.Fatal(err)
	}
	m := calibrate.NewMachine(calibrate.Base(), library)
	var text strings.Builder
	text.WriteString("variant,collective,world,size,us\n")
	for _, world := range worlds {
		for _, c := range []string{"all_reduce", "all_gather", "broadcast", "all_to_all"} {
			for size := 1024; size <= 1<<28; size *= 8 {
				fmt.Fprintf(&text, "default,%s,%d,%d,1\n", c, world, size)
				if c != "all_to_all" {
					fmt.Fprintf(&text, "ring_simple,%s,%d,%d,1\nring_ll128,%s,%d,%d,1\n", c, world, size, c, world, size)
				}
			}
		}
	}
	rows, err := calibrate.Parse("made.csv", []byte(text.String()))
	if err != nil {
		t.Fatal(err)
	}
	for i := range rows {
		c, err := m.Case(rows[i])
		if err != nil {
			t.Fatal(err)
		}
		rows[i].Micros = m.Predict(&c, truth())
	}
	return rows
}

// From times that the model itself made, the fit finds the model.
func TestFitFindsWhatMadeTheTimes(t *testing.T) {
	c, err := calibrate.NewCalibration(measured(t, 2, 4), "nccl-2.28", nil)
	if err != nil {
		t.Fatal(err)
	}
	before := -1.0
	for done := false; !done; {
		var share float64
		if share, done, err = c.Step(); err != nil || share < before {
			t.Fatalf("%v: %v after %v", err, share, before)
		}
		before = share
	}
	text, err := c.YAML("made")
	if err != nil {
		t.Fatal(err)
	}
	top, err := topology.Parse("made.yaml", []byte(text))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	got, want := top.Transport().SIP, truth().SIP
	for _, c := range []struct {
		name      string
		got, want int64
	}{
		{"launch", got.Launch, want.Launch},
		{"skew", got.Skew, want.Skew},
		{"simple's bandwidth", got.Protocols[topology.Simple].Bandwidth, want.Protocols[topology.Simple].Bandwidth},
		{"LL's hop", got.Protocols[topology.LL].Hop, want.Protocols[topology.LL].Hop},
		{"LL128's start", got.Protocols[topology.LL128].Start, want.Protocols[topology.LL128].Start},
	} {
		if math.Abs(float64(c.got)/float64(c.want)-1) > 0.05 {
			t.Errorf("%s is %d, want %d", c.name, c.got, c.want)
		}
	}
	var report strings.Builder
	if err := c.Report(&report); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"4 ranks, predicted from the other world sizes: ", "The data do not determine these", "transport.sip.unaligned.simple.4"} {
		if !strings.Contains(report.String(), want) {
			t.Errorf("the report lacks %q:\n%s", want, report.String())
		}
	}
	if !strings.Contains(text, "# assumed: the data do not determine it") {
		t.Errorf("nothing is assumed:\n%s", text)
	}
}

func TestCalibrationRefuses(t *testing.T) {
	row := measured(t, 2)[:1]
	plain, err := topology.Load("sips8")
	if err != nil {
		t.Fatal(err)
	}
	many := []calibrate.Row{row[0]}
	many[0].World = 100
	for want, call := range map[string]func() error{
		"there is nothing to fit: no measured collective": func() error {
			_, err := calibrate.NewCalibration(nil, "nccl-2.28", nil)
			return err
		},
		`there is no library "x"; the libraries are nccl-2.28`: func() error {
			_, err := calibrate.NewCalibration(row, "x", nil)
			return err
		},
		"topology sips8 has no transport section to start from": func() error {
			_, err := calibrate.NewCalibration(row, "nccl-2.28", plain)
			return err
		},
		"a measurement has 100 ranks; topology base has 64 SIPs": func() error {
			_, err := calibrate.NewCalibration(many, "nccl-2.28", nil)
			return err
		},
	} {
		if err := call(); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestParseProductsProblems(t *testing.T) {
	const header = "dtype,m,n,k,us\n"
	for _, c := range []struct{ name, text, want string }{
		{"empty", "", "g.csv:1:1: the header must be dtype,m,n,k,us, or dtype,m,n,k,us,layout"},
		{"dtype", header + "float16,1,1,1,1\nfloat17,1,1,1,1\n", `g.csv:3:1: unknown dtype "float17"`},
		{"size", header + "float16,1,0,1,1\n", `g.csv:2:11: n must be a whole number from 1 to 16777216, not "0"`},
		{"time", header + "float16,1,1,1,-1\n", `g.csv:2:15: us must be a time in µs above 0, not "-1"`},
		{"layout", "dtype,m,n,k,us,layout\nfloat16,1,1,1,1,nt\nfloat16,1,1,1,1,NT\n", `g.csv:3:17: a layout is nn, nt, tn or tt, not "NT"`},
		{"short", header + "float16,1\n", "g.csv:2:1: the row and the header must have as many fields, not 2 and 5"},
	} {
		_, err := calibrate.ParseProducts("g.csv", []byte(c.text))
		if err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s:\ngot  %v\nwant %s", c.name, err, c.want)
		}
	}
}

// From times that the model itself made, the fit predicts others.
func TestFitProductsPredictsWhatItHasNotSeen(t *testing.T) {
	base := calibrate.Base()
	k := *base.Kernels()
	k.Launch, k.Tile, k.Drop = 2500*1000, 900*1000, 0.1
	truth := base.WithKernels(&k, 4.5, 0.3)
	var seen, others []calibrate.Product
	for i, m := range []int{256, 1024, 2048, 4096, 8192} {
		for j, depth := range []int{1024, 2048, 8192} {
			for _, d := range []dtype.DType{dtype.F16, dtype.F32} {
				p := calibrate.Product{DType: d, Product: network.Product{M: m, N: 4096, K: depth}}
				p.Micros = calibrate.PredictProduct(truth, p)
				if (i+j)%2 == 0 {
					seen = append(seen, p)
				} else {
					others = append(others, p)
				}
			}
		}
	}
	fitted, err := calibrate.FitProducts(base, seen)
	if err != nil {
		t.Fatal(err)
	}
	if off := calibrate.CompareProducts(fitted, others); off.Mean() > 0.03 {
		t.Errorf("what it has not seen is off by %s %%", off)
	}
}

// A file that was fitted to products too is a topology with both sections.
func TestYAMLHasTheProducts(t *testing.T) {
	c, err := calibrate.NewCalibration(measured(t, 2)[:3], "nccl-2.28", nil)
	if err != nil {
		t.Fatal(err)
	}
	truth := calibrate.Base().WithKernels(calibrate.Base().Kernels(), 5, 0.4)
	var products []calibrate.Product
	for _, m := range []int{512, 2048, 8192} {
		p := calibrate.Product{DType: dtype.F16, Product: network.Product{M: m, N: m, K: m}}
		p.Micros = calibrate.PredictProduct(truth, p)
		products = append(products, p)
	}
	if err := c.AddProducts(products); err != nil {
		t.Fatal(err)
	}
	for done := false; !done; {
		if _, done, err = c.Step(); err != nil {
			t.Fatal(err)
		}
	}
	text, err := c.YAML("both")
	if err != nil {
		t.Fatal(err)
	}
	top, err := topology.Parse("both.yaml", []byte(text))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if off := calibrate.CompareProducts(top, products); top.SIPs() != 2 || off.Mean() > 0.05 {
		t.Errorf("%d SIPs, products off by %s %%\n%s", top.SIPs(), off, text)
	}
}
