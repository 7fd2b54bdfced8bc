//! What the collector asks for: a JSON object, the program's first argument.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

use anytrace_core::Error;
use anytrace_live::{Access, Tls};
use serde_json::Value;

/// What to do.
#[derive(Debug)]
pub(crate) enum Request {
    /// Take spans.
    Serve(Serve),
    /// Send spans on.
    Forward(Forward),
}

/// `{"action": "serve", …}`.
#[derive(Debug)]
pub(crate) struct Serve {
    /// Where to listen.
    pub(crate) listen: SocketAddr,
    /// The collector's socket.
    pub(crate) collector: PathBuf,
    /// Who may send.
    pub(crate) access: Access,
    /// Most recordings at a time: each needs a connection to the collector.
    pub(crate) recordings: usize,
    /// Longest packet that the collector takes, in bytes.
    pub(crate) packet_bytes: u64,
}

/// `{"action": "forward", …}`.
#[derive(Debug)]
pub(crate) struct Forward {
    /// `http://HOST:PORT` or `https://HOST:PORT`.
    pub(crate) to: String,
    /// The folder of the collection.
    pub(crate) folder: PathBuf,
    /// Files that were there before; what they have already is not sent.
    pub(crate) earlier: Vec<PathBuf>,
}

impl FromStr for Request {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let wrong = |what: &str| Error::usage(format!("a request of `anytrace heph collect` was expected: {what}"));
        let object: Value = serde_json::from_str(text).map_err(|error| wrong(&error.to_string()))?;
        let word = |key: &str| object[key].as_str().ok_or_else(|| wrong(key));
        let path = |value: &Value| value.as_str().map(PathBuf::from);
        let paths = |key: &str| object[key].as_array().into_iter().flatten().filter_map(path);
        let number = |key: &str| object[key].as_u64().ok_or_else(|| wrong(key));
        match word("action")? {
            "serve" => {
                let tls = &object["tls"];
                let tls = path(&tls["certificate"]).zip(path(&tls["key"])).map(|(certificate, key)| Tls {
                    certificate,
                    key,
                    client_authorities: path(&tls["client_authorities"]),
                });
                let allowed = object["allow"].as_array().into_iter().flatten().filter_map(Value::as_str);
                let allowed = allowed.map(|word| word.parse().map_err(|_| wrong("allow"))).collect::<Result<_, _>>()?;
                Ok(Self::Serve(Serve {
                    listen: word("listen")?.parse().map_err(|_| wrong("listen"))?,
                    collector: word("collector")?.into(),
                    access: Access { tls, tokens: path(&object["tokens"]), allowed },
                    recordings: usize::try_from(number("recordings")?).unwrap_or(usize::MAX).max(1),
                    packet_bytes: number("packet_bytes")?,
                }))
            }
            "forward" => Ok(Self::Forward(Forward {
                to: word("to")?.to_owned(),
                folder: word("folder")?.into(),
                earlier: paths("earlier").collect(),
            })),
            other => Err(wrong(other)),
        }
    }
}
