//! The program on a terminal of its own.

use std::{
    fs::{File, OpenOptions},
    io::Read as _,
    os::unix::{ffi::OsStrExt as _, fs::OpenOptionsExt as _},
    process::{Command, Stdio},
};

use rustix::{
    fs::OFlags,
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
    termios::{Winsize, tcsetwinsize},
};

use super::process::Said;

/// What a command prints to a terminal of this size; its standard error is none.
pub fn on_terminal(mut command: Command, columns: u16, rows: u16) -> Said {
    let screen = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&screen).unwrap();
    unlockpt(&screen).unwrap();
    let name = ptsname(&screen, Vec::new()).unwrap();
    let line = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(i32::try_from(OFlags::NOCTTY.bits()).unwrap())
        .open(std::ffi::OsStr::from_bytes(name.to_bytes()))
        .unwrap();
    let size = Winsize {
        ws_row: rows,
        ws_col: columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    tcsetwinsize(&line, size).unwrap();
    let child = command
        .stdin(Stdio::null())
        .stdout(line)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Nothing holds the terminal any more but the child, whose end it tells.
    drop(command);
    let shown = std::thread::spawn(move || {
        let mut screen = File::from(screen);
        let (mut shown, mut part) = (Vec::new(), [0; 4096]);
        while let Ok(read @ 1..) = screen.read(&mut part) {
            shown.extend_from_slice(&part[..read]);
        }
        shown
    });
    let ended = child.wait_with_output().unwrap();
    let shown = shown.join().unwrap();
    Said {
        code: ended.status.code().unwrap_or(-1),
        out: String::from_utf8_lossy(&shown).replace("\r\n", "\n"),
        err: String::from_utf8_lossy(&ended.stderr).into_owned(),
    }
}
