//! x
pub(crate) fn generate(_out: &mut dyn std::io::Write, _bytes: u64) -> std::io::Result<()> {
    Ok(())
}
