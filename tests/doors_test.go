package tests

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// basic are the types of which values cross between Python and Go.
var basic = map[string]bool{"bool": true, "int": true, "int64": true, "float64": true, "string": true, "error": true}

// Package pybind has doors only: what they share is in pybind/internal/host.
func TestPybindHasDoorsOnly(t *testing.T) {
	files, err := filepath.Glob("../pybind/*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("no files of pybind: %v", err)
	}
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range parsed.Decls {
			if why := noDoor(d); why != "" {
				t.Errorf("%s: %s", file, why)
			}
		}
	}
}

// noDoor says why a declaration is no door; "" for one.
func noDoor(d ast.Decl) string {
	f, ok := d.(*ast.FuncDecl)
	if !ok {
		if g := d.(*ast.GenDecl); g.Tok != token.IMPORT {
			return "declares a " + g.Tok.String()
		}
		return ""
	}
	if f.Recv != nil || !f.Name.IsExported() {
		return f.Name.Name + " is no exported function"
	}
	fails := false
	for _, list := range []*ast.FieldList{f.Type.Params, f.Type.Results} {
		for _, field := range fieldsOf(list) {
			kind, _ := field.Type.(*ast.Ident)
			if kind == nil || !basic[kind.Name] {
				return f.Name.Name + " takes or returns what gopy does not pass as a value"
			}
			fails = fails || kind.Name == "error"
		}
	}
	if fails && !isGuarded(f) {
		return f.Name.Name + " begins neither with defer host.Guard(&err) nor with host.Operate"
	}
	return ""
}

func fieldsOf(list *ast.FieldList) []*ast.Field {
	if list == nil {
		return nil
	}
	return list.List
}

// isGuarded says whether a panic in the function becomes an error.
func isGuarded(f *ast.FuncDecl) bool {
	var call ast.Expr
	switch first := f.Body.List[0].(type) {
	case *ast.DeferStmt:
		return isOf(first.Call, "Guard")
	case *ast.AssignStmt:
		call = first.Rhs[0]
	case *ast.ReturnStmt:
		if len(first.Results) == 1 {
			call = first.Results[0]
		}
	}
	operation, ok := call.(*ast.CallExpr)
	return ok && isOf(operation, "Operate")
}

// isOf says whether a call is of a function of package host.
func isOf(call *ast.CallExpr, name string) bool {
	s, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || s.Sel.Name != name {
		return false
	}
	of, ok := s.X.(*ast.Ident)
	return ok && of.Name == "host"
}

func TestNoDoorIsTold(t *testing.T) {
	for text, want := range map[string]string{
		"func F(a int64) (err error) { defer host.Guard(&err); return nil }": "",
		"func F() string { return \"\" }":                                    "",
		"func F() (err error) { return host.Operate(nil) }":                  "",
		"func f() {}":                     "no exported function",
		"func (t T) F() {}":               "no exported function",
		"type t int":                      "declares a type",
		"var x = 1":                       "declares a var",
		"func F(a []int) {}":              "takes or returns",
		"func F() (err error) { return }": "begins neither",
		"func F() (err error) { defer other.Guard(&err); return }": "begins neither",
	} {
		parsed, err := parser.ParseFile(token.NewFileSet(), "f.go", "package p\n"+text, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		if got := noDoor(parsed.Decls[0]); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}
