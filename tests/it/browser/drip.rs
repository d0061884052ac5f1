//! A line to a server over which answers come in small parts, so that a browser paints pages before they are whole.

use std::time::Duration;

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, copy},
    net::{TcpListener, TcpStream},
};

/// Bytes that come at once.
const PART: usize = 512;
/// A frame of the browser takes a little more, so that it can paint after each part.
const PAUSE: Duration = Duration::from_millis(17);

/// The address of a line to the server at `url`, for as long as the test lasts.
pub(super) async fn before(url: &str) -> String {
    let server = url.trim_start_matches("http://").to_owned();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((browser, _)) = listener.accept().await {
            let server = TcpStream::connect(&server).await.unwrap();
            tokio::spawn(connected(browser, server));
        }
    });
    format!("http://{address}")
}

/// Passes bytes on until one side is done.
async fn connected(browser: TcpStream, server: TcpStream) {
    browser.set_nodelay(true).unwrap();
    let (mut asks, mut told) = browser.into_split();
    let (mut tells, mut asked) = server.into_split();
    tokio::spawn(async move { copy(&mut asks, &mut asked).await });
    let mut part = [0; PART];
    while let Ok(count @ 1..) = tells.read(&mut part).await {
        if told.write_all(&part[..count]).await.is_err() {
            return;
        }
        tokio::time::sleep(PAUSE).await;
    }
}
