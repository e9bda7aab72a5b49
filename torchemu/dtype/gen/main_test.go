package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

func TestTheFilesAreWhatGoGenerateWrites(t *testing.T) {
	for pkg, dir := range map[string]string{"dtype": "..", "tensor": "../../tensor"} {
		files, err := generate(pkg)
		if err != nil {
			t.Fatal(err)
		}
		for name, want := range files {
			got, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want) {
				t.Errorf("%s/%s is not what the generator writes: run go generate ./torchemu/%s", dir, name, pkg)
			}
		}
	}
}

func TestUnknownPackage(t *testing.T) {
	if files, err := generate("sim"); err == nil || files != nil {
		t.Errorf("generate(sim) = %d files, %v; want an error", len(files), err)
	}
}
