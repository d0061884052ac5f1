//! What a person does to a page: keys that are pressed, and a mouse that is moved and clicked.

use serde_json::json;

use super::tab::Tab;

impl Tab {
    /// Presses and lets go of one key: a letter, or a name such as `Tab`.
    pub async fn press(&mut self, key: &str) {
        self.chord(key, 0).await;
    }

    /// Presses one key while others are down: 2 is Ctrl.
    pub async fn chord(&mut self, key: &str, others: u8) {
        let (code, number, text) = match key {
            "Tab" => ("Tab".to_owned(), 9, None),
            "Enter" => ("Enter".to_owned(), 13, Some("\r".to_owned())),
            "Escape" => ("Escape".to_owned(), 27, None),
            "/" => ("Slash".to_owned(), 191, Some("/".to_owned())),
            "?" => ("Slash".to_owned(), 191, Some("?".to_owned())),
            "[" => ("BracketLeft".to_owned(), 219, Some("[".to_owned())),
            "]" => ("BracketRight".to_owned(), 221, Some("]".to_owned())),
            letter => {
                let upper = letter.to_ascii_uppercase();
                let number = u32::from(upper.as_bytes()[0]);
                (format!("Key{upper}"), number, Some(letter.to_owned()))
            }
        };
        let mut down =
            json!({"type": "keyDown", "key": key, "code": code, "windowsVirtualKeyCode": number});
        down["modifiers"] = others.into();
        if let Some(text) = text
            && others == 0
        {
            down["text"] = text.into();
        }
        self.call("Input.dispatchKeyEvent", down).await;
        let up =
            json!({"type": "keyUp", "key": key, "code": code, "windowsVirtualKeyCode": number});
        self.call("Input.dispatchKeyEvent", up).await;
    }

    /// Pastes or types a text where the focus is.
    pub async fn write(&mut self, text: &str) {
        self.call("Input.insertText", json!({"text": text})).await;
    }

    /// Goes on with the tabulator until the element that an expression gives has the focus.
    pub async fn tab_to(&mut self, element: &str) {
        let is_there = format!("document.activeElement === ({element})");
        for _ in 0..600 {
            if self.eval(&is_there).await == true {
                let seen = "(() => { const box = document.activeElement.getBoundingClientRect(); \
                    return box.bottom > 0 && box.top < innerHeight; })()";
                self.becomes(seen).await;
                return;
            }
            self.press("Tab").await;
        }
        panic!("the tabulator does not reach {element}");
    }

    /// Clicks the middle of the element that an expression gives, which must be seen there.
    pub async fn click(&mut self, element: &str) {
        let place = format!(
            "(() => {{ const it = ({element}); it.scrollIntoView({{block: 'center'}}); \
             const box = it.getClientRects()[0]; \
             const [x, y] = [box.x + box.width / 2, box.y + box.height / 2]; \
             return it.contains(document.elementFromPoint(x, y)) ? [x, y] : null; }})()"
        );
        let at = self.eval(&place).await;
        assert!(!at.is_null(), "{element} is covered or not on the page");
        for kind in ["mouseMoved", "mousePressed", "mouseReleased"] {
            let button = if kind == "mouseMoved" { "none" } else { "left" };
            let event =
                json!({"type": kind, "x": at[0], "y": at[1], "button": button, "clickCount": 1});
            self.call("Input.dispatchMouseEvent", event).await;
        }
    }
}
