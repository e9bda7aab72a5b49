#!/bin/sh
# Says in one line what is missing on this machine and which package has it.
#
#   prerequisites.sh build PYTHON   what compiling the extension for PYTHON takes
#   prerequisites.sh setup PYTHON   that, and what setting up the development environment takes

purpose=$1
python=$2

missing() {
    printf 'torchemu needs %s: install %s (the Debian package; elsewhere its equivalent).\n' "$1" "$2" >&2
    exit 1
}

has() {
    command -v "$1" >/dev/null 2>&1
}

# A CC of the user's may hold arguments.
compiles() {
    echo '#include <stdlib.h>' | ${CC:-gcc} -E - >/dev/null 2>&1
}

python_says() {
    "$python" -c "$1" >/dev/null 2>&1
}

check_python() {
    has "$python" || missing "CPython 3.11 or newer ($python is not there)" "python3"
    python_says 'import sys; assert sys.version_info >= (3, 11) and sys.implementation.name == "cpython"' ||
        missing "CPython 3.11 or newer ($python is $("$python" --version 2>&1); make PYTHON=... names another)" "python3 3.11 or newer"
    python_says 'import sysconfig, os; assert os.path.isfile(os.path.join(sysconfig.get_path("include"), "Python.h"))' ||
        missing "Python.h, the headers of $("$python" --version 2>&1)" "python3-dev"
}

check_go() {
    has go || missing "Go 1.26 or newer" "golang-go 1.26 or newer"
    found=$(go env GOVERSION 2>&1) || missing "Go 1.26 or newer ($(echo "$found" | tail -n 1))" "golang-go 1.26 or newer"
    case $found in
    go1.[0-9] | go1.1[0-9] | go1.2[0-5] | go1.[0-9][!0-9]* | go1.1[0-9][!0-9]* | go1.2[0-5][!0-9]*)
        missing "Go 1.26 or newer ($found is there)" "golang-go 1.26 or newer" ;;
    esac
}

check_c() {
    compiler=${CC:-gcc}
    has "${compiler%% *}" || missing "a C compiler (${compiler%% *} is not there)" "gcc"
    compiles || missing "the headers of the C library" "libc6-dev"
}

check_setup() {
    python_says 'import venv, ensurepip' || missing "the venv and ensurepip modules of $("$python" --version 2>&1)" "python3-venv"
    has git || missing "git" "git"
}

check_python
[ "$purpose" = build ] || check_setup
check_go
check_c
