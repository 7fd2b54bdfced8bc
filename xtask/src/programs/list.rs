//! The programs.

/// A program.
#[derive(Clone, Copy)]
pub(super) struct Program {
    pub(super) name: &'static str,
    /// The crate that has its sources.
    pub(super) package: &'static str,
    /// Where they are in it: folders whose `.c` or `.cc` files are compiled, or files.
    pub(super) parts: &'static [&'static str],
    /// Files of the folders that are not compiled, by the end of their names.
    pub(super) but: &'static [&'static str],
    /// Folders of headers.
    pub(super) headers: &'static [&'static str],
    pub(super) options: &'static [&'static str],
    /// What it is put to work with; `@` is a file of ours.
    pub(super) arguments: &'static [&'static str],
    /// The same for times.
    pub(super) long: &'static [&'static str],
    /// Names that its types must have, and must not: those of wrappers, that say nothing.
    pub(super) named: &'static [&'static str],
    pub(super) unnamed: &'static [&'static str],
    /// True where several threads record.
    pub(super) has_threads: bool,
    /// Compiled by the tests.
    pub(super) is_short: bool,
}

pub(super) const PROGRAMS: &[Program] = &[
    Program {
        name: "bzip2",
        package: "bzip2-sys",
        parts: &["bzip2-1.0.8"],
        but: &["bzip2.c", "bzip2recover.c", "dlltest.c", "mk251.c", "spewG.c", "unzcrash.c"],
        headers: &["bzip2-1.0.8"],
        options: &["-DBZ_NO_STDIO"],
        arguments: &["20000"],
        long: &["2000000"],
        named: &["BZ2_bzCompressInit+", "BZ2_bzDecompressInit+", "BZ2_crc32Table (global)", "main (stack)"],
        unnamed: &["default_bzalloc+"],
        has_threads: false,
        is_short: true,
    },
    Program {
        name: "lua",
        package: "lua-src",
        parts: &["lua-5.4.9"],
        but: &["lua.c", "luac.c"],
        headers: &["lua-5.4.9"],
        options: &["-DLUA_USE_POSIX"],
        arguments: &["@work.lua"],
        long: &["@work.lua", "20"],
        named: &["luaS_", "luaH_resize", "luaH_new", "luaV_concat", "main (stack)", "base_funcs (global)"],
        unnamed: &["l_alloc+", "luaM_malloc_+", "luaM_realloc_+"],
        has_threads: false,
        is_short: true,
    },
    Program {
        name: "zstd",
        package: "zstd-sys",
        parts: &["zstd/lib/common", "zstd/lib/compress", "zstd/lib/decompress"],
        but: &[],
        headers: &["zstd/lib", "zstd/lib/common"],
        options: &["-DZSTD_MULTITHREAD", "-DZSTD_DISABLE_ASM", "-DXXH_NAMESPACE=ZSTD_"],
        arguments: &["1500000", "4"],
        long: &["20000000", "4"],
        named: &["ZSTD_", "POOL_create", "main+", "threads (stack)"],
        unnamed: &["ZSTD_customMalloc+", "ZSTD_customCalloc+"],
        has_threads: true,
        is_short: true,
    },
    Program {
        name: "sqlite",
        package: "libsqlite3-sys",
        parts: &["sqlite3/sqlite3.c"],
        but: &[],
        headers: &["sqlite3"],
        options: &["-DSQLITE_THREADSAFE=1", "-DSQLITE_OMIT_LOAD_EXTENSION"],
        arguments: &["3000"],
        long: &["80000"],
        named: &["pcache1", "sqlite3Config (global)", "main (stack)"],
        unnamed: &["sqlite3MemMalloc+", "sqlite3Malloc+", "sqlite3DbMallocRaw"],
        has_threads: false,
        is_short: false,
    },
    Program {
        name: "leveldb",
        package: "leveldb-sys",
        parts: &["deps/leveldb-1.22/db", "deps/leveldb-1.22/table", "deps/leveldb-1.22/util"],
        but: &[
            "_test.cc",
            "_test.c",
            "db_bench.cc",
            "leveldbutil.cc",
            "env_windows.cc",
            "testharness.cc",
            "testutil.cc",
        ],
        headers: &["deps/leveldb-1.22", "deps/leveldb-1.22/include"],
        options: &["-std=c++11", "-DLEVELDB_PLATFORM_POSIX=1", "-DLEVELDB_IS_BIG_ENDIAN=0", "-DHAVE_FDATASYNC=1"],
        arguments: &["database", "600"],
        long: &["database", "2000"],
        named: &["leveldb::Arena::AllocateNewBlock", "leveldb::DBImpl::MakeRoomForWrite", "main (stack)"],
        unnamed: &["operator new"],
        has_threads: true,
        is_short: false,
    },
];
