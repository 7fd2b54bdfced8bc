#!/bin/sh
# Builds the object files beside this folder: gcc, clang and rustc; run in this folder.
set -eu
o=..
gcc -c -ffile-prefix-map="$PWD"=. -g -gdwarf-5 -O1 small.c -o $o/c-dwarf5.o
gcc -c -ffile-prefix-map="$PWD"=. -g -gdwarf-4 -O2 -fdebug-types-section small.cpp -o $o/cpp-type-units.o
gcc -c -ffile-prefix-map="$PWD"=. -g -gdwarf-3 -O0 small.c -o $o/c-dwarf3.o
gcc -c -ffile-prefix-map="$PWD"=. -g -gz=zlib -O1 small.cpp -o $o/cpp-compressed.o
gcc -c -ffile-prefix-map="$PWD"=. -g -gsplit-dwarf -O1 small.c -o $o/c-split.o
gcc -shared -nostdlib -fPIC -s -O1 small.c -o $o/c-stripped.so -Wl,--build-id=none -Wl,-z,noseparate-code -Wl,-z,norelro
clang -c -ffile-prefix-map="$PWD"=. -g -gdwarf-5 -O1 small.cpp -o $o/cpp-clang.o
clang -c -ffile-prefix-map="$PWD"=. -g -O1 --target=powerpc64-linux-gnu small.c -o $o/c-ppc64.o
clang -c -ffile-prefix-map="$PWD"=. -g -O1 --target=mipsel-linux-gnu small.c -o $o/c-mips32.o
clang -c -ffile-prefix-map="$PWD"=. -g -O1 --target=armv7-linux-gnueabi small.c -o $o/c-arm32.o
clang -c -ffile-prefix-map="$PWD"=. -g -O1 --target=aarch64-apple-macos small.c -o $o/c-macho.o
clang -c -ffile-prefix-map="$PWD"=. -g -gdwarf -O1 --target=x86_64-pc-windows-gnu small.c -o $o/c-coff.o
clang -c -ffile-prefix-map="$PWD"=. -O1 -fxray-instrument -fxray-instruction-threshold=1 small.c -o $o/c-xray.o
rustc --remap-path-prefix="$PWD"=. --edition 2024 --emit obj -g -C opt-level=1 -C panic=abort small.rs -o $o/rust.o
rustc --remap-path-prefix="$PWD"=. --edition 2024 --emit obj -g -C opt-level=1 -C panic=abort -C symbol-mangling-version=v0 small.rs -o $o/rust-v0.o
