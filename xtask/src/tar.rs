//! Archives of a few small files, for traces that are folders.

/// The files as `tar` writes them.
pub(crate) fn archive(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, bytes) in files {
        out.extend(header(name, bytes.len() as u64));
        out.extend_from_slice(bytes);
        out.resize(out.len().next_multiple_of(512), 0);
    }
    out.extend([0; 1024]);
    out
}

/// The header of a file.
pub(crate) fn header(name: &str, size: u64) -> [u8; 512] {
    let mut block = [0_u8; 512];
    block[..name.len()].copy_from_slice(name.as_bytes());
    block[100..108].copy_from_slice(b"0000644\0");
    block[124..136].copy_from_slice(format!("{size:011o}\0").as_bytes());
    block[148..156].fill(b' ');
    block[156] = b'0';
    block[257..265].copy_from_slice(b"ustar\x0000");
    let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
    block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    block
}
