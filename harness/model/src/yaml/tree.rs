//! A document as a tree that knows the place and the notation of every key and value.

use super::scalar;
use crate::problem::{Path, Segment, Span};
use serde_json::{Map, Value};
use serde_saphyr::granit_parser::{self as granit, Event, Parser, ScalarStyle, StructureStyle};
use std::collections::HashMap;

/// More nesting than this is no file of a person's.
const MAX_DEPTH: usize = 100;
/// More nodes than this come from aliases of aliases only.
const MAX_NODES: usize = 200_000;

/// A value and where it stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// Where.
    pub span: Span,
    /// How it is written.
    pub style: Style,
    /// What.
    pub kind: NodeKind,
}

/// What a node is.
#[derive(Clone, Debug, PartialEq)]
pub enum NodeKind {
    /// A string, number, boolean or nothing.
    Scalar(Value),
    /// A list.
    List(Vec<Node>),
    /// A mapping, in the order of the file.
    Mapping(Vec<Entry>),
}

/// One entry of a mapping.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The key, as JSON has it: `on` is `true`.
    pub key: String,
    /// The key as written.
    pub written: String,
    /// Where the key stands.
    pub span: Span,
    /// How the key is written.
    pub style: Style,
    /// The value.
    pub value: Node,
}

/// How a node is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// A scalar without quotes.
    Plain,
    /// A scalar in quotes, or a block of text: always a string.
    Quoted,
    /// A list or mapping over lines.
    Block,
    /// A list or mapping in brackets.
    Flow,
}

/// What is wrong with the text itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flaw {
    /// Where.
    pub span: Span,
    /// What.
    pub message: String,
    /// What to write instead.
    pub help: Option<String>,
}

/// Reads all documents of a text. Empty documents are left out. After an error of syntax, what came before it is there.
pub fn parse(text: &str) -> (Vec<Node>, Vec<Flaw>) {
    let mut reader =
        Reader { text, parser: Parser::new_from_str(text), anchors: HashMap::new(), nodes: 0, flaws: Vec::new() };
    let mut documents = Vec::new();
    if let Err(flaw) = reader.documents(&mut documents) {
        reader.flaws.push(flaw);
    }
    (documents, reader.flaws)
}

// === impl Node ===

impl Node {
    /// As JSON.
    pub fn to_value(&self) -> Value {
        match &self.kind {
            NodeKind::Scalar(value) => value.clone(),
            NodeKind::List(items) => Value::Array(items.iter().map(Self::to_value).collect()),
            NodeKind::Mapping(entries) => {
                Value::Object(entries.iter().map(|e| (e.key.clone(), e.value.to_value())).collect::<Map<_, _>>())
            }
        }
    }

    /// The entries of a mapping; none for others.
    pub fn entries(&self) -> &[Entry] {
        match &self.kind {
            NodeKind::Mapping(entries) => entries,
            _ => &[],
        }
    }

    /// The entry of a mapping under `key`.
    pub fn entry(&self, key: &str) -> Option<&Entry> {
        self.entries().iter().find(|e| e.key == key)
    }

    /// The value at `path`.
    pub fn at(&self, path: &Path) -> Option<&Self> {
        path.0.iter().try_fold(self, |node, segment| node.child(segment))
    }

    /// The place of the value at `path`, or of the nearest node above it that is there.
    pub fn span_at(&self, path: &Path) -> Span {
        let mut node = self;
        for segment in &path.0 {
            match node.child(segment) {
                Some(child) => node = child,
                None => break,
            }
        }
        node.span
    }

    /// The place of the key that `path` ends in; of the value where it ends in a list.
    pub fn key_span_at(&self, path: &Path) -> Span {
        let Some((Segment::Key(key), above)) = path.0.split_last() else {
            return self.span_at(path);
        };
        let parent = self.at(&Path(above.to_vec()));
        parent.and_then(|p| p.entry(key)).map_or_else(|| self.span_at(path), |e| e.span)
    }

    fn child(&self, segment: &Segment) -> Option<&Self> {
        match (segment, &self.kind) {
            (Segment::Key(key), _) => self.entry(key).map(|e| &e.value),
            (Segment::Index(index), NodeKind::List(items)) => items.get(*index),
            _ => None,
        }
    }
}

// === reading ===

struct Reader<'a> {
    text: &'a str,
    parser: Parser<'a, granit::StrInput<'a>>,
    anchors: HashMap<usize, Node>,
    nodes: usize,
    flaws: Vec<Flaw>,
}

type Next<'a> = (Event<'a>, granit::Span);

impl<'a> Reader<'a> {
    fn documents(&mut self, documents: &mut Vec<Node>) -> Result<(), Flaw> {
        loop {
            let (event, _) = self.next()?;
            match event {
                Event::StreamEnd => return Ok(()),
                Event::DocumentStart(..) => {
                    let first = self.next()?;
                    let node = self.node(first, 0)?;
                    if node.kind != NodeKind::Scalar(Value::Null) {
                        documents.push(node);
                    }
                }
                _ => {}
            }
        }
    }

    fn next(&mut self) -> Result<Next<'a>, Flaw> {
        let end = || Flaw {
            span: Span { line: 1, column: 1, ..Span::default() },
            message: "the text ends too early".into(),
            help: None,
        };
        loop {
            let next = self.parser.next_event().ok_or_else(end)?;
            match next {
                // Comments and names of anchors; the crate knows comments only with a feature that others may switch on.
                Ok((event, _)) if !is_structure(&event) => {}
                Ok(event) => return Ok(event),
                Err(error) => return Err(self.syntax(&error)),
            }
        }
    }

    fn node(&mut self, (event, at): Next<'a>, depth: usize) -> Result<Node, Flaw> {
        let span = self.span(&at);
        self.nodes += 1;
        if depth > MAX_DEPTH || self.nodes > MAX_NODES {
            return Err(too_much(span));
        }
        let (anchor, node) = match event {
            Event::Scalar(text, style, anchor, tag) => {
                let quoted = style != ScalarStyle::Plain;
                let tag = tag.as_ref().and_then(|t| t.core_suffix().map(str::to_owned));
                let value = match tag.as_deref() {
                    Some("str" | "binary") => Value::String(text.into_owned()),
                    // `!` alone, and quotes, make a string.
                    None | Some("") if quoted => Value::String(text.into_owned()),
                    _ => scalar::resolve(&text),
                };
                let style = if quoted { Style::Quoted } else { Style::Plain };
                (anchor, Node { span, style, kind: NodeKind::Scalar(value) })
            }
            Event::SequenceStart(style, anchor, _) => {
                let mut items = Vec::new();
                loop {
                    let next = self.next()?;
                    if next.0 == Event::SequenceEnd {
                        break;
                    }
                    items.push(self.node(next, depth + 1)?);
                }
                (anchor, Node { span, style: layout(style), kind: NodeKind::List(items) })
            }
            Event::MappingStart(style, anchor, _) => {
                let entries = self.mapping(depth)?;
                (anchor, Node { span, style: layout(style), kind: NodeKind::Mapping(entries) })
            }
            Event::Alias(id) => {
                let mut node = self.anchors.get(&id).cloned().ok_or_else(|| Flaw {
                    span,
                    message: "an alias inside its own anchor".into(),
                    help: None,
                })?;
                self.nodes += size(&node);
                if depth + height(&node) > MAX_DEPTH {
                    return Err(too_much(span));
                }
                node.span = span;
                (0, node)
            }
            other => return Err(Flaw { span, message: format!("unexpected {other:?}"), help: None }),
        };
        if anchor != 0 {
            self.anchors.insert(anchor, node.clone());
        }
        Ok(node)
    }

    fn mapping(&mut self, depth: usize) -> Result<Vec<Entry>, Flaw> {
        let mut entries: Vec<Entry> = Vec::new();
        let mut merged: Vec<Entry> = Vec::new();
        loop {
            let next = self.next()?;
            if next.0 == Event::MappingEnd {
                break;
            }
            let written = match &next.0 {
                Event::Scalar(text, ..) => text.to_string(),
                _ => String::new(),
            };
            let key = self.node(next, depth + 1)?;
            let following = self.next()?;
            let value = self.node(following, depth + 1)?;
            if written == "<<" && key.style == Style::Plain {
                merge(&mut merged, &value);
                continue;
            }
            let Some(name) = key_text(&key.kind, &written) else {
                self.flaws.push(Flaw {
                    span: key.span,
                    message: "a key must be a string".into(),
                    help: Some("quote it; in flow style ({…}) keys and values in parentheses that contain brackets need quotes".into()),
                });
                continue;
            };
            if let Some(first) = entries.iter().find(|e| e.key == name) {
                self.flaws.push(Flaw {
                    span: key.span,
                    message: format!("duplicate key `{written}`"),
                    help: Some(format!("it stands in line {} already", first.span.line)),
                });
                continue;
            }
            entries.push(Entry { key: name, written, span: key.span, style: key.style, value });
        }
        for entry in merged {
            if !entries.iter().any(|e| e.key == entry.key) {
                entries.push(entry);
            }
        }
        Ok(entries)
    }

    fn syntax(&self, error: &granit::ScanError) -> Flaw {
        let mark = *error.marker();
        let span = self.span(&granit::Span::empty(mark));
        let line = self.text.lines().nth(span.line.saturating_sub(1)).unwrap_or_default();
        let indent = &line[..line.len() - line.trim_start().len()];
        let help = if indent.contains('\t') {
            Some("indent with spaces: YAML has no tabs")
        } else if line.contains(['{', '[']) && line.contains('(') {
            Some("in flow style ({…} and […]) keys and values in parentheses need quotes")
        } else {
            None
        };
        let text = error.to_string();
        let message = text.split(" at ").next().unwrap_or(&text);
        Flaw { span, message: format!("not YAML: {message}"), help: help.map(Into::into) }
    }

    fn span(&self, at: &granit::Span) -> Span {
        let range = at.byte_range().unwrap_or_default();
        let covered = self.text.get(range.clone()).unwrap_or_default();
        let first_line = covered.lines().next().unwrap_or_default().trim_end();
        Span { line: at.start.line(), column: at.start.col() + 1, offset: range.start, length: first_line.len() }
    }
}

fn is_structure(event: &Event<'_>) -> bool {
    event.is_node()
        || matches!(
            event,
            Event::StreamStart
                | Event::StreamEnd
                | Event::DocumentStart(..)
                | Event::DocumentEnd
                | Event::SequenceEnd
                | Event::MappingEnd
        )
}

fn layout(style: StructureStyle) -> Style {
    match style {
        StructureStyle::Block => Style::Block,
        StructureStyle::Flow => Style::Flow,
    }
}

/// Keys as `sigs.k8s.io/yaml` turns them into JSON: booleans and numbers by their value.
fn key_text(kind: &NodeKind, written: &str) -> Option<String> {
    match kind {
        NodeKind::Scalar(Value::String(s)) => Some(s.clone()),
        NodeKind::Scalar(Value::Null) if written.is_empty() => None,
        NodeKind::Scalar(Value::Null) => Some("null".into()),
        NodeKind::Scalar(other) => Some(other.to_string()),
        _ => None,
    }
}

fn merge(into: &mut Vec<Entry>, value: &Node) {
    match &value.kind {
        NodeKind::Mapping(entries) => into.extend(entries.iter().cloned()),
        NodeKind::List(all) => all.iter().for_each(|node| merge(into, node)),
        NodeKind::Scalar(_) => {}
    }
}

fn too_much(span: Span) -> Flaw {
    Flaw { span, message: "the document is nested too deeply or too large".into(), help: None }
}

/// How many levels are below a node; aliases of aliases are deeper than their text.
fn height(node: &Node) -> usize {
    let children: Box<dyn Iterator<Item = &Node>> = match &node.kind {
        NodeKind::Scalar(_) => return 0,
        NodeKind::List(items) => Box::new(items.iter()),
        NodeKind::Mapping(entries) => Box::new(entries.iter().map(|e| &e.value)),
    };
    1 + children.map(height).max().unwrap_or_default()
}

fn size(node: &Node) -> usize {
    1 + match &node.kind {
        NodeKind::Scalar(_) => 0,
        NodeKind::List(items) => items.iter().map(size).sum(),
        NodeKind::Mapping(entries) => entries.iter().map(|e| size(&e.value)).sum(),
    }
}
