//! What is drawn and bound after a call of a trace of graphics: framebuffers and textures as pictures, by a replay up to
//! there.

use std::fs::File as DiskFile;
use std::io::{Read, Seek, SeekFrom};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use super::page::text;
use super::{Problem, Work};
use crate::view::{File, View};

/// The name under which the page asks for them, and the title.
pub(super) const NAME: &str = "pictures";
pub(super) const TITLE: &str = "Framebuffers and textures after this call";

/// How often the program is looked at.
const LOOK: Duration = Duration::from_millis(30);

/// Bytes of what the program prints, and of complaints.
const STATE_BYTES_MAX: u64 = 256 << 20;
const COMPLAINT_BYTES_MAX: u64 = 4000;

/// Pictures that are shown, and the bytes of all of them.
const PICTURES_MAX: usize = 200;
const PICTURES_BYTES_MAX: usize = 32 << 20;

/// True where a replay can show a file's calls.
pub(super) fn are_of(view: &View, file: &File) -> bool {
    let has_frames = file.state().format.is_some_and(|format| format.has_frames());
    has_frames && view.options.replayer.is_some() && file.can_be_read_again()
}

/// The pictures after a call.
pub(super) fn blocks(work: &Work<'_>, file: &File, call: u64) -> Result<Vec<Value>, Problem> {
    let state = match state(work, file, call)? {
        Ok(state) => state,
        Err(problem) => return Ok(vec![text(&format!("The call cannot be replayed: {problem}"))]),
    };
    let mut room = PICTURES_BYTES_MAX;
    let mut blocks = Vec::new();
    for (key, title) in [("framebuffer", "Framebuffer"), ("textures", "Textures")] {
        let images = state.get(key).and_then(Value::as_object).into_iter().flatten();
        let pictures: Vec<Value> = images.filter_map(|(name, image)| picture(name, image, &mut room)).collect();
        if pictures.is_empty() {
            blocks.push(text(&format!("{title}: none that can be shown.")));
        } else {
            let shown = pictures.into_iter().take(PICTURES_MAX).collect::<Vec<_>>();
            blocks.push(json!({"kind": "pictures", "title": title, "making": false, "pictures": shown}));
        }
    }
    Ok(blocks)
}

/// An image of the state, where there is room for it.
fn picture(name: &str, image: &Value, room: &mut usize) -> Option<Value> {
    let data = image.get("__data__")?.as_str()?;
    *room = room.checked_sub(data.len())?;
    let number = |key: &str| image.get(key).and_then(Value::as_u64).unwrap_or(0);
    let format = image.get("__format__").and_then(Value::as_str).unwrap_or_default();
    let words = format!("{name}: {} × {} {format}", number("__width__"), number("__height__"));
    Some(json!({"source": format!("data:image/png;base64,{data}"), "text": words, "link": Value::Null}))
}

/// The driver's state, or what the program says where there is none.
fn state(work: &Work<'_>, file: &File, call: u64) -> Result<Result<Value, String>, Problem> {
    let failed = |error: std::io::Error| Problem::new(500, format!("a replay: {error}"));
    let program = work.view.options.replayer.as_deref().ok_or_else(Problem::missing)?;
    let (mut out, mut said) = (tempfile::tempfile().map_err(failed)?, tempfile::tempfile().map_err(failed)?);
    let mut command = Command::new(program);
    command.args(["apitrace", "replay", "-D", &call.to_string(), "--"]).arg(&*file.path());
    command.stdin(Stdio::null()).stdout(out.try_clone().map_err(failed)?).stderr(said.try_clone().map_err(failed)?);
    let mut child = command.spawn().map_err(failed)?;
    while child.try_wait().map_err(failed)?.is_none() {
        if let Err(problem) = work.check() {
            // It may have ended in between.
            let _ = child.kill();
            let _ = child.wait();
            return Err(problem);
        }
        std::thread::sleep(LOOK);
    }
    let bytes = read(&mut out, STATE_BYTES_MAX).map_err(failed)?;
    // Where calls before it could not be repeated, the exit code is 1, and the state is there all the same.
    Ok(serde_json::from_slice(&bytes).map_err(|_| {
        let said = read(&mut said, COMPLAINT_BYTES_MAX).unwrap_or_default();
        let said = String::from_utf8_lossy(&said).trim().trim_start_matches("anytrace: error: ").to_owned();
        if said.is_empty() { "the replay ended without a state".to_owned() } else { said }
    }))
}

fn read(file: &mut DiskFile, most: u64) -> std::io::Result<Vec<u8>> {
    file.seek(SeekFrom::Start(0))?;
    let mut bytes = Vec::new();
    file.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_is_a_picture_with_its_size_as_long_as_there_is_room() {
        let image = json!({"__data__": "AAAA", "__width__": 64, "__height__": 48, "__format__": "GL_RGB"});
        let mut room = 6;
        let made = picture("GL_BACK", &image, &mut room).unwrap();
        assert_eq!(
            (&made["source"], &made["text"]),
            (&"data:image/png;base64,AAAA".into(), &"GL_BACK: 64 × 48 GL_RGB".into())
        );
        assert!(picture("GL_FRONT", &image, &mut room).is_none(), "no room");
        assert!(picture("x", &json!({"__width__": 1}), &mut room).is_none(), "no image");
    }
}
