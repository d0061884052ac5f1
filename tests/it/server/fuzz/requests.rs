//! What goes over the wire: a request of the descriptors, spoilt somewhere on its way.

use std::fmt;

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use prost_reflect::{DynamicMessage, prost::Message as _};

use super::{
    giants,
    random::{Random, spoil},
    valid::{Maker, Method, Rest},
};

/// One request, or what poses as one.
pub enum Attempt {
    /// Bytes to an HTTP/1.1 port.
    One(Vec<u8>),
    /// A request of a well-made HTTP/2 client.
    Two {
        path: String,
        headers: Vec<(String, Vec<u8>)>,
        body: Vec<u8>,
    },
    /// Bytes to a port that speaks HTTP/2, whose answer nobody reads to its end.
    Frames(Vec<u8>),
}

impl fmt::Debug for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |bytes: &[u8]| {
            let cut = &bytes[..bytes.len().min(3000)];
            format!("{} bytes: {}", bytes.len(), cut.escape_ascii())
        };
        match self {
            Self::One(bytes) => write!(f, "HTTP/1.1, {}", shown(bytes)),
            Self::Frames(bytes) => write!(f, "HTTP/2 frames, {}", shown(bytes)),
            Self::Two {
                path,
                headers,
                body,
            } => {
                write!(f, "HTTP/2 POST {path}")?;
                for (name, value) in headers {
                    write!(f, "\n  {name}: {}", shown(value))?;
                }
                write!(f, "\n  {}", shown(body))
            }
        }
    }
}

/// The token of a user who may do everything.
pub const TOKEN: &str = "ann";

pub fn attempt(methods: &[Method], random: &mut Random, seen: &[String]) -> Attempt {
    if random.percent(3) {
        return giants::attempt(methods, random);
    }
    let mut maker = Maker { random, seen };
    let method = &methods[maker.random.below(methods.len())];
    let message = maker.message(&method.descriptor.input());
    match (&method.rest, maker.random.below(10)) {
        (Some(rest), 0..5) => Attempt::One(one(&mut maker, rest, &message)),
        (_, 5..9) | (None, 0..5) => two(&mut maker, method, &message),
        _ => {
            let body = framed(&message.encode_to_vec(), 0);
            let mut frames = giants::preface();
            frames.extend(giants::headers(1, &method.path, maker.random.percent(10)));
            frames.extend(giants::frame(0, 1, 1, &body));
            let from = giants::preface().len() * usize::from(!maker.random.percent(20));
            let mut rest = frames.split_off(from);
            spoil(&mut rest, maker.random);
            frames.extend(rest);
            Attempt::Frames(frames)
        }
    }
}

/// A message as gRPC frames it.
pub fn framed(message: &[u8], flag: u8) -> Vec<u8> {
    let mut framed = vec![flag];
    framed.extend(u32::try_from(message.len()).unwrap().to_be_bytes());
    framed.extend(message);
    framed
}

fn text_at(message: &DynamicMessage, path: &str) -> String {
    match path.split_once('.') {
        Some((first, rest)) => {
            let value = message.get_field_by_name(first).unwrap();
            text_at(value.as_message().unwrap(), rest)
        }
        None => {
            let value = message.get_field_by_name(path).unwrap();
            value.as_str().unwrap().to_owned()
        }
    }
}

/// The path of a template, its variables filled in from the message.
fn path(rest: &Rest, message: &DynamicMessage) -> Vec<u8> {
    let mut path = String::new();
    let mut template = rest.template.as_str();
    while let Some((before, after)) = template.split_once('{') {
        let (variable, after) = after.split_once('}').unwrap();
        let field = variable.split('=').next().unwrap();
        path += before;
        let mut text = text_at(message, field);
        if text.is_empty() && !matches!(rest.body.as_str(), "" | "*") {
            // What creates says it in the name.
            let name = text_at(message, &format!("{}.name", rest.body));
            let parts: Vec<_> = name.rsplitn(3, '/').collect();
            text = (*parts.last().unwrap()).to_owned();
        }
        for (index, part) in text.split('/').enumerate() {
            path += if index == 0 { "" } else { "/" };
            path += &utf8_percent_encode(part, NON_ALPHANUMERIC).to_string();
        }
        template = after;
    }
    (path + template).into_bytes()
}

fn query(maker: &mut Maker<'_>, rest: &Rest, message: &DynamicMessage) -> Vec<u8> {
    let mut pairs = maker.beside();
    let mut text = String::new();
    if rest.body != "*" {
        for (field, value) in message.fields() {
            let values = value
                .as_list()
                .map_or(vec![value], |list| list.iter().collect());
            for value in values {
                let spelled = match value {
                    prost_reflect::Value::String(text) => text.clone(),
                    prost_reflect::Value::I32(number)
                    | prost_reflect::Value::EnumNumber(number) => number.to_string(),
                    _ => continue,
                };
                let encoded = utf8_percent_encode(&spelled, NON_ALPHANUMERIC);
                text += &format!("&{}={encoded}", field.name());
            }
        }
    }
    for (name, value) in pairs.drain(..) {
        text += &format!("&{name}={}", utf8_percent_encode(&value, NON_ALPHANUMERIC));
    }
    text.into_bytes()
}

fn one(maker: &mut Maker<'_>, rest: &Rest, message: &DynamicMessage) -> Vec<u8> {
    let mut path = path(rest, message);
    let mut query = query(maker, rest, message);
    let value = message.get_field_by_name(&rest.body);
    let mut body = match value.as_deref().and_then(|value| value.as_message()) {
        // Times out of range have no JSON.
        Some(value) => serde_json::to_vec(value).unwrap_or_else(|_| b"{\"etag\":5}".to_vec()),
        None if maker.random.percent(20) => b"{\"a\":[1,2".to_vec(),
        None => Vec::new(),
    };
    let random = &mut *maker.random;
    let spoilt = random.below(12);
    match spoilt {
        0 => spoil(&mut path, random),
        1 => spoil(&mut query, random),
        2 => spoil(&mut body, random),
        _ => {}
    }
    let mut length = body.len().to_string().into_bytes();
    if random.percent(3) {
        spoil(&mut length, random);
    }
    let mut head = rest.verb.to_ascii_uppercase().into_bytes();
    head.push(b' ');
    head.extend(path.iter().filter(|byte| !b" \r\n".contains(byte)));
    if !query.is_empty() {
        query[0] = b'?';
        head.extend(query.iter().filter(|byte| !b" \r\n".contains(byte)));
    }
    head.extend(b" HTTP/1.1\r\nhost: server\r\nconnection: close\r\n");
    head.extend(format!("authorization: Bearer {TOKEN}\r\n").bytes());
    for (name, value) in headers(random) {
        head.extend(name.bytes().chain(*b": "));
        head.extend(value);
        head.extend(b"\r\n");
    }
    head.extend(b"content-type: application/json\r\ncontent-length: ");
    head.extend(length);
    head.extend(b"\r\n\r\n");
    head.extend(body);
    if spoilt == 3 && random.percent(50) {
        spoil(&mut head, random);
    }
    head
}

/// Headers that mean something to a server, a few of them.
fn headers(random: &mut Random) -> Vec<(String, Vec<u8>)> {
    const SOME: &[(&str, &str)] = &[
        ("grpc-timeout", "5S"),
        ("grpc-timeout", "99999999H"),
        ("x-request-id", "abc-1"),
        ("accept-encoding", "gzip;q=0.5, *;q=nan"),
        ("impersonate-user", "bob"),
        ("impersonate-extra-%zz", "x"),
        ("hindsight-label-selector", "a in (b"),
        ("hindsight-field-selector", "a=b,,"),
        ("hindsight-filter-language", "fields"),
        ("fields", "results.annotations,records.data"),
        (
            "traceparent",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        ),
        ("grpc-metadata-fields", "name"),
        ("origin", "https://a.example"),
        ("content-encoding", "gzip"),
        ("expect", "100-continue"),
        ("upgrade", "h2c"),
        ("te", "trailers"),
        ("authorization", "Basic YTpi"),
        ("grpc-encoding", "gzip"),
        ("grpc-accept-encoding", "gzip,br,identity"),
        ("transfer-encoding", "chunked"),
    ];
    let mut all = Vec::new();
    while random.percent(20) {
        let (name, value) = SOME[random.below(SOME.len())];
        let mut value = value.as_bytes().to_vec();
        if random.percent(30) {
            spoil(&mut value, random);
            value.retain(|byte| !b"\r\n".contains(byte));
        }
        all.push((name.to_owned(), value));
    }
    all
}

fn two(maker: &mut Maker<'_>, method: &Method, message: &DynamicMessage) -> Attempt {
    let mut message = message.encode_to_vec();
    let random = &mut *maker.random;
    if random.percent(30) {
        spoil(&mut message, random);
    }
    let flag = if random.percent(5) { random.byte() } else { 0 };
    let mut body = framed(&message, flag);
    if method.descriptor.is_client_streaming() {
        for _ in 0..random.below(4) {
            spoil(&mut message, random);
            body.extend(framed(&message, 0));
        }
    }
    if random.percent(5) {
        spoil(&mut body, random);
    }
    let kinds = [
        "application/grpc",
        "application/grpc+proto",
        "application/grpc-web",
    ];
    let kind = if random.percent(95) {
        kinds[0]
    } else {
        random.pick(&kinds)
    };
    let mut sent = vec![
        ("content-type".to_owned(), kind.as_bytes().to_vec()),
        ("te".to_owned(), b"trailers".to_vec()),
        (
            "authorization".to_owned(),
            format!("Bearer {TOKEN}").into_bytes(),
        ),
    ];
    // What HTTP/2 forbids, a well-made client does not send.
    let forbidden = ["transfer-encoding", "upgrade", "te"];
    sent.extend(
        headers(random)
            .into_iter()
            .filter(|(name, value)| !forbidden.contains(&name.as_str()) && http_value(value)),
    );
    Attempt::Two {
        path: method.path.clone(),
        headers: sent,
        body,
    }
}

fn http_value(value: &[u8]) -> bool {
    value.iter().all(|byte| *byte >= 0x20 && *byte != 0x7f)
}
