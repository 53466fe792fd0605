//! Expressions as tokens.

use super::parser::ExpressionError;
use serde_json::Value;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    Name(String),
    Binding(String),
    Literal(Value),
    Number(i64),
    /// One of `@ . [ ] ( ) , | ! && || == != < <= > >= [? *`, or a character that the subset has not.
    Sign(&'static str),
    End,
}

const SIGNS: [&str; 21] =
    ["[?", "&&", "||", "==", "!=", "<=", ">=", "@", ".", "[", "]", "(", ")", ",", "|", "!", "<", ">", "*", "&", ":"];

/// Tokens with the byte offset of each; `End` is the last.
pub(super) fn tokens(text: &str) -> Result<Vec<(usize, Token)>, ExpressionError> {
    let mut all = Vec::new();
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        let rest = &text[at..];
        let (token, length) = match c {
            c if c.is_whitespace() => {
                at += c.len_utf8();
                continue;
            }
            '\'' => raw(rest, at)?,
            '`' => json(rest, at)?,
            '"' => quoted(rest, at)?,
            '$' => {
                let name = name(&rest[1..]);
                if name.is_empty() {
                    return Err(ExpressionError::at(at, "a name must follow `$`"));
                }
                (Token::Binding(name.into()), name.len() + 1)
            }
            c if c.is_ascii_digit() || (c == '-' && rest[1..].starts_with(|c: char| c.is_ascii_digit())) => {
                let end = rest[1..].find(|c: char| !c.is_ascii_digit()).map_or(rest.len(), |n| n + 1);
                let number = rest[..end].parse().map_err(|_| ExpressionError::at(at, "too large a number"))?;
                (Token::Number(number), end)
            }
            c if c.is_ascii_alphabetic() || c == '_' => {
                let name = name(rest);
                (Token::Name(name.into()), name.len())
            }
            _ => match SIGNS.iter().find(|s| rest.starts_with(**s)) {
                Some(sign) => (Token::Sign(sign), sign.len()),
                None => return Err(ExpressionError::unsupported(at, &format!("`{c}`"))),
            },
        };
        all.push((at, token));
        at += length;
    }
    all.push((text.len(), Token::End));
    Ok(all)
}

fn name(text: &str) -> &str {
    &text[..text.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(text.len())]
}

/// `'text'`, in which `\'` is a quote.
fn raw(rest: &str, at: usize) -> Result<(Token, usize), ExpressionError> {
    let mut text = String::new();
    let mut characters = rest.char_indices().skip(1).peekable();
    while let Some((i, c)) = characters.next() {
        match c {
            '\'' => return Ok((Token::Literal(text.into()), i + 1)),
            '\\' if characters.peek().is_some_and(|(_, c)| matches!(c, '\'' | '\\')) => {
                text.extend(characters.next().map(|(_, c)| c));
            }
            c => text.push(c),
        }
    }
    Err(ExpressionError::at(at, "the string that begins here has no end"))
}

fn json(rest: &str, at: usize) -> Result<(Token, usize), ExpressionError> {
    let end = rest[1..].find('`').ok_or_else(|| ExpressionError::at(at, "the literal that begins here has no end"))?;
    let inner = &rest[1..=end];
    let value = serde_json::from_str(inner)
        .map_err(|_| ExpressionError::at(at, &format!("`{inner}` is not JSON; a string is written '{inner}'")))?;
    Ok((Token::Literal(value), end + 2))
}

/// `"name"`: a field whose name is no identifier.
fn quoted(rest: &str, at: usize) -> Result<(Token, usize), ExpressionError> {
    let mut stream = serde_json::Deserializer::from_str(rest).into_iter::<String>();
    match stream.next() {
        Some(Ok(name)) => Ok((Token::Name(name), stream.byte_offset())),
        _ => Err(ExpressionError::at(at, "the name that begins here has no end")),
    }
}
