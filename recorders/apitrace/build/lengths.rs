//! How many things a pointer points to.

/// The variant of the table's `Length` for an attribute `len` of the registry. `names`: the function's parameters.
pub(crate) fn parse(function: &str, name: &str, len: Option<&str>, names: &[String]) -> String {
    let at = |wanted: &str| names.iter().position(|name| name == wanted);
    if is_attribute_list(function, name) {
        return format!("Length::Attributes({})", function.starts_with("egl"));
    }
    // Lengths in bytes of numbers (`glGetnUniformfv`), and memory that the driver writes to later: reading so many numbers
    // would read behind the program's memory, or before there is anything.
    let is_in_bytes = function.starts_with("glGetn") || function == "glGetPerfMonitorCounterDataAMD";
    let is_written_later = ["glFeedbackBuffer", "glFeedbackBufferxOES", "glSelectBuffer", "glInstrumentsBufferSGIX"];
    if is_in_bytes && is_size(len) || is_written_later.contains(&function) {
        return "Length::Unknown".to_owned();
    }
    // What the registry has wrong of some: indices are as many as `count`, of a type.
    if let ("indices", Some(count), Some(kind)) = (name, at("count"), at("type"))
        && !function.contains("MultiDraw")
    {
        return format!("Length::Typed {{ count: {count}, kind: {kind} }}");
    }
    // Lists of numbers: one for each draw.
    if let (true, "first" | "count" | "indices" | "basevertex", Some(draws)) =
        (function.starts_with("glMultiDraw"), name, at("drawcount").or_else(|| at("primcount")))
    {
        return format!("Length::Times({draws}, 1)");
    }
    let Some(len) = len else { return unsaid(function, name, names) };
    if let Ok(number) = len.parse::<u32>() {
        return format!("Length::Constant({number})");
    }
    if let Some((count, times)) = len.split_once('*')
        && let (Some(at), Ok(times)) = (at(count), times.parse::<u32>())
    {
        return format!("Length::Times({at}, {times})");
    }
    if let Some(at) = at(len) {
        return format!("Length::Times({at}, 1)");
    }
    let Some(list) = len.strip_prefix("COMPSIZE(").and_then(|rest| rest.strip_suffix(')')) else {
        return "Length::Unknown".to_owned();
    };
    let places: Vec<(&str, usize)> = list.split(',').filter_map(|word| Some((word, at(word)?))).collect();
    let place = |wanted: &str| places.iter().find(|(word, _)| *word == wanted).map(|(_, at)| *at);
    let image = |width: &str| match (place("format"), place("type")) {
        (Some(format), Some(kind)) => {
            let side = |name: &str| place(name).map_or_else(|| "None".to_owned(), |at| format!("Some({at})"));
            Some(format!(
                "Length::Image {{ format: {format}, kind: {kind}, sides: [{}, {}, {}] }}",
                side(width),
                side("height"),
                side("depth")
            ))
        }
        _ => None,
    };
    if function == "glPolygonStipple" {
        return "Length::Bitmap(None)".to_owned();
    }
    if let Some(image) = image("width") {
        return image;
    }
    if let Some(at) = place("pname") {
        return format!("Length::Parameter({at})");
    }
    match (places.as_slice(), list) {
        ([(_, count), (_, kind)], "count,type" | "n,type") => {
            format!("Length::Typed {{ count: {count}, kind: {kind} }}")
        }
        ([(_, width), (_, height)], "width,height") => format!("Length::Bitmap(Some(({width}, {height})))"),
        ([(_, target), (_, stride), (_, order)], "target,stride,order") => {
            format!("Length::Map {{ target: {target}, sides: &[({stride}, {order})] }}")
        }
        ([(_, target), (_, first), (_, second), (_, third), (_, fourth)], "target,ustride,uorder,vstride,vorder") => {
            format!("Length::Map {{ target: {target}, sides: &[({first}, {second}), ({third}, {fourth})] }}")
        }
        ([(_, buffer)], "buffer") => format!("Length::Cleared({buffer})"),
        // One number of things: `count`, `drawcount`, `length` and the like; or a text that may end by itself.
        ([(_, at)], _) if is_count(list) => format!("Length::Times({at}, 1)"),
        (_, "label,length" | "message,length" | "buf,length") => {
            place("length").map_or_else(|| "Length::Unknown".to_owned(), |at| format!("Length::Times({at}, 1)"))
        }
        _ => "Length::Unknown".to_owned(),
    }
}

fn is_size(len: Option<&str>) -> bool {
    len.is_some_and(|len| ["bufSize", "dataSize"].contains(&len))
}

fn is_count(name: &str) -> bool {
    let name = name.to_lowercase();
    name.contains("count") || name.starts_with("num") || name == "length"
}

/// Lists of names and values that end with a name of their own.
fn is_attribute_list(function: &str, name: &str) -> bool {
    (function.starts_with("egl") || function.starts_with("glX"))
        && ["attrib_list", "attribList", "attribs", "attrib"].contains(&name)
        && !function.starts_with("glXGet")
        && !function.starts_with("glXQuery")
}

/// The registry of EGL and GLX has no lengths: what is known of them.
fn unsaid(function: &str, name: &str, names: &[String]) -> String {
    let at = |wanted: &str| names.iter().position(|name| name == wanted);
    match (function, name) {
        ("eglChooseConfig" | "eglGetConfigs", "configs") => {
            at("num_config").map_or_else(|| "Length::Unknown".to_owned(), |at| format!("Length::Returned({at})"))
        }
        ("eglSwapBuffersWithDamageKHR" | "eglSwapBuffersWithDamageEXT" | "eglSetDamageRegionKHR", "rects") => {
            at("n_rects").map_or_else(|| "Length::Unknown".to_owned(), |at| format!("Length::Times({at}, 4)"))
        }
        _ if function.starts_with("egl") || function.starts_with("glX") => "Length::One".to_owned(),
        _ => "Length::Unknown".to_owned(),
    }
}
