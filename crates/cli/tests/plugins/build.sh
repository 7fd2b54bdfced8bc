# Builds the program and its libraries; the first word is the compiler (LLVM 20 or later).
set -e
flags="-O1 -fxray-instrument -fxray-instruction-threshold=1 -fxray-shared -Wl,-rpath,\$ORIGIN -L. -Wl,--no-as-needed -Wl,--build-id -Wl,--strip-debug"
library() { name=$1; shift; $CC $flags -fPIC -shared -DNAME=$name library.c -o lib$name.so "$@"; }
CC=$1
library base
library mid -DNEEDS=base -lbase
library dep
library zoo -DNEEDS=dep -ldep
library ant
$CC $flags -fPIE -pie program.c -o program -lmid -ldl
