// Gen writes the AVX2 and F16C assembly of the packages dtype and tensor. Run it by
//
//	go generate ./torchemu/dtype ./torchemu/tensor
//
// A test here compares the files of the two packages with what it would write.
package main

import (
	"fmt"
	"log"
	"os"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/pass"
	"github.com/mmcloughlin/avo/printer"
)

// The two files of a package: the assembly, and its declarations in Go.
const (
	asmFile  = "avx2_amd64.s"
	stubFile = "avx2_amd64.go"
)

// kernels says for each package what emits its functions.
var kernels = map[string]func(*build.Context){
	"dtype":  conversions,
	"tensor": reductions,
}

func main() {
	log.SetFlags(0)
	if len(os.Args) != 2 {
		log.Fatal("usage, in the folder of a package: gen dtype|tensor")
	}
	files, err := generate(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	for name, text := range files {
		if err := os.WriteFile(name, text, 0o666); err != nil {
			log.Fatal(err)
		}
	}
}

// generate returns the text of the files of a package, by name.
func generate(pkg string) (map[string][]byte, error) {
	emit, ok := kernels[pkg]
	if !ok {
		return nil, fmt.Errorf("unknown package %q: want dtype or tensor", pkg)
	}
	c := build.NewContext()
	c.ConstraintExpr("amd64")
	emit(c)
	file, err := c.Result()
	if err != nil {
		return nil, err
	}
	if err := pass.Compile.Execute(file); err != nil {
		return nil, err
	}
	config := printer.Config{Argv: []string{"go", "generate"}, Pkg: pkg}
	asm, err := printer.NewGoAsm(config).Print(file)
	if err != nil {
		return nil, err
	}
	stubs, err := printer.NewStubs(config).Print(file)
	return map[string][]byte{asmFile: asm, stubFile: stubs}, err
}
