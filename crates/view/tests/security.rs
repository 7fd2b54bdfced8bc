//! Who may ask the server, and for what.

#![allow(missing_docs)]
#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

mod client;

use client::{Client, example};

#[test]
fn only_the_token_opens_the_page() {
    let client = Client::of(&[example("threads4.xray")]);
    assert_eq!(client.get("").status, 200);
    let token = client.token.clone();
    assert_eq!((token.len(), token.bytes().all(|byte| byte.is_ascii_hexdigit())), (32, true));
    let mut wrong = token.clone();
    wrong.replace_range(31.., if token.ends_with('0') { "1" } else { "0" });
    for path in [
        "/".to_owned(),
        "/api/trace".to_owned(),
        format!("/{wrong}/api/trace"),
        format!("/{}/api/trace", &token[..31]),
        format!("/{token}0/api/trace"),
        format!("/{token}%2Fapi/trace"),
        format!("//{token}/api/trace"),
        format!("/{}/", token.to_uppercase() + "x"),
        "/favicon.ico".to_owned(),
    ] {
        let response = client.path(&path);
        assert_eq!(response.status, 403, "{path}");
        assert!(!response.text().contains(&token), "{path}");
    }
    assert_eq!(client.path(&format!("/{token}")).status, 404);
}

#[test]
fn another_host_is_refused() {
    let client = Client::of(&[example("relay.heph")]);
    let (token, port) = (&client.token, client.host.split(':').nth(1).unwrap().to_owned());
    let ask = |host: &str| {
        client.raw(format!("GET /{token}/api/trace HTTP/1.1\r\n{host}Connection: close\r\n\r\n").as_bytes()).status
    };
    assert_eq!(ask(&format!("Host: localhost:{port}\r\n")), 200);
    assert_eq!(ask(&format!("Host: 127.0.0.1:{port}\r\nOrigin: http://127.0.0.1:{port}\r\n")), 200);
    for headers in [
        "Host: evil.example\r\n".to_owned(),
        format!("Host: evil.example:{port}\r\n"),
        format!("Host: 127.0.0.1.evil.example:{port}\r\n"),
        "Host: 127.0.0.1\r\n".to_owned(),
        format!("Host: 127.0.0.1:{port}\r\nHost: evil.example\r\n"),
        format!("Host: 127.0.0.1:{port}\r\nOrigin: http://evil.example\r\n"),
        format!("Host: 127.0.0.1:{port}\r\nOrigin: null\r\n"),
        String::new(),
    ] {
        let status = ask(&headers);
        assert!((400..500).contains(&status), "{headers:?}: {status}");
    }
}

#[test]
fn paths_lead_nowhere_else() {
    let client = Client::of(&[example("relay.heph")]);
    for path in [
        "../../etc/passwd",
        "..%2f..%2fetc%2fpasswd",
        "assets/../../../Cargo.toml",
        "assets/%2e%2e/index.html",
        "assets//etc/passwd",
        "index.html%00",
        "src/lib.rs",
        "api/../index.html",
        "api/nothing",
        "api/",
    ] {
        let response = client.get(path);
        assert_eq!(response.status, 404, "{path}: {}", response.text());
        assert!(response.json()["error"].is_string(), "{path}");
    }
}

#[test]
fn answers_carry_a_strict_policy_and_no_permission_for_others() {
    let client = Client::of(&[example("relay.heph")]);
    for path in ["", "api/trace", "favicon.svg", "nothing"] {
        let response = client.get(path);
        let policy = response.header("content-security-policy").unwrap();
        assert!(policy.starts_with("default-src 'none'; script-src 'self'; style-src 'self'"), "{policy}");
        assert!(policy.contains("frame-ancestors 'none'") && !policy.contains("unsafe"), "{policy}");
        assert_eq!(response.header("x-content-type-options"), Some("nosniff"));
        assert_eq!(response.header("referrer-policy"), Some("no-referrer"));
        assert_eq!(response.header("access-control-allow-origin"), None);
    }
    assert_eq!(client.get("favicon.svg").header("content-type"), Some("image/svg+xml"));
}

#[test]
fn wrong_methods_and_parameters_are_refused_with_words() {
    let client = Client::of(&[example("threads4.xray")]);
    assert_eq!(client.post("api/trace", "").status, 405);
    assert_eq!(client.post("", "").status, 405);
    assert_eq!(client.get("api/sql").status, 405);
    assert_eq!(client.post("api/sql", "select 1").status, 501, "the engine is not there");
    for path in [
        "api/tiles",
        "api/tiles?start=x&end=1",
        "api/tiles?start=5&end=1",
        "api/tiles?start=NaN&end=1",
        "api/tiles?start=0&end=inf",
        "api/tiles?start=0&end=1&tracks=a",
        "api/names?from=-1",
        "api/search?q=/(/",
        "api/selection?start=9&end=3",
        "api/flame?merge=x",
        "api/export?form=exe",
        "api/slice?track=0",
        "api/trace?after=%zz",
    ] {
        let response = client.get(path);
        assert_eq!(response.status, 400, "{path}: {}", response.text());
        assert!(response.json()["error"].as_str().is_some_and(|text| text.len() > 3), "{path}");
    }
    assert_eq!(client.get("api/slice?track=999&depth=0&start=1").status, 404);
    assert_eq!(client.get("api/export?file=9").status, 404);
}

#[test]
fn a_statement_has_a_limit() {
    let client = Client::of(&[example("relay.heph")]);
    assert_eq!(client.post("api/sql", &"x".repeat((1 << 20) + 1)).status, 413);
}
