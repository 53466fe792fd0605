//! Expressions from their text.

use super::{
    ast::{Comparison, Expression, Function},
    lexer::{Token, tokens},
};

/// Why a text is no expression.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ExpressionError {
    /// Where in the text, in bytes.
    pub offset: usize,
    /// What is wrong.
    pub message: String,
}

/// More nesting than this is no expression of a person's.
const MAX_DEPTH: usize = 50;

/// Reads an expression, without the parentheses around it.
///
/// # Errors
/// When it is none, or uses what only all of JMESPath has.
pub fn parse(text: &str) -> Result<Expression, ExpressionError> {
    let mut parser = Parser { tokens: tokens(text)?, at: 0, depth: 0 };
    let expression = parser.pipe()?;
    match parser.peek() {
        Token::End => Ok(expression),
        _ => Err(parser.unexpected()),
    }
}

struct Parser {
    tokens: Vec<(usize, Token)>,
    at: usize,
    depth: usize,
}

// === impl ExpressionError ===

impl ExpressionError {
    pub(super) fn at(offset: usize, message: &str) -> Self {
        Self { offset, message: message.into() }
    }

    pub(super) fn unsupported(offset: usize, what: &str) -> Self {
        Self { offset, message: format!("{what} is not supported in assertions; say it in a `cel:` assertion") }
    }
}

// === impl Parser ===

type Parsed = Result<Expression, ExpressionError>;

impl Parser {
    fn pipe(&mut self) -> Parsed {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(ExpressionError::at(self.offset(), "nested too deeply"));
        }
        let mut left = self.or()?;
        while self.take("|") {
            left = Expression::Pipe(Box::new(left), Box::new(self.or()?));
        }
        self.depth -= 1;
        Ok(left)
    }

    fn or(&mut self) -> Parsed {
        let mut left = self.and()?;
        while self.take("||") {
            left = Expression::Or(Box::new(left), Box::new(self.and()?));
        }
        Ok(left)
    }

    fn and(&mut self) -> Parsed {
        let mut left = self.comparison()?;
        while self.take("&&") {
            left = Expression::And(Box::new(left), Box::new(self.comparison()?));
        }
        Ok(left)
    }

    fn comparison(&mut self) -> Parsed {
        let left = self.unary()?;
        let how = match self.peek() {
            Token::Sign("==") => Comparison::Equal,
            Token::Sign("!=") => Comparison::NotEqual,
            Token::Sign("<") => Comparison::Less,
            Token::Sign("<=") => Comparison::LessOrEqual,
            Token::Sign(">") => Comparison::Greater,
            Token::Sign(">=") => Comparison::GreaterOrEqual,
            _ => return Ok(left),
        };
        self.at += 1;
        Ok(Expression::Compare(how, Box::new(left), Box::new(self.unary()?)))
    }

    fn unary(&mut self) -> Parsed {
        let mut negations = 0usize;
        while self.take("!") {
            negations += 1;
        }
        let of = self.steps()?;
        let not = |of| Expression::Not(Box::new(of));
        Ok(match negations {
            0 => of,
            n if n % 2 == 1 => not(of),
            // Whether it is there: true or false, and not the value itself.
            _ => not(not(of)),
        })
    }

    /// A primary and what is taken from it: `.name`, `[0]`, `[*]`, `[?…]`.
    fn steps(&mut self) -> Parsed {
        let mut left = match self.peek() {
            // On the node at hand.
            Token::Sign("[" | "[?") => Expression::Current,
            _ => self.primary()?,
        };
        let mut each = false;
        loop {
            if self.take(".") {
                match self.next() {
                    Token::Name(name) => left = Expression::Field(Box::new(left), name),
                    Token::Sign("*") => return Err(ExpressionError::unsupported(self.offset(), "`.*`")),
                    _ => return Err(self.back().unexpected()),
                }
            } else if self.take("[?") {
                let condition = self.pipe()?;
                self.expect("]")?;
                left = Expression::Filter(Box::new(left), Box::new(condition));
                each = true;
            } else if self.take("[") {
                let offset = self.offset();
                left = match self.next() {
                    Token::Number(_) if each => {
                        let message =
                            "after a filter or [*] an index is taken of each item; for the item itself write `| [0]`";
                        return Err(ExpressionError::at(offset, message));
                    }
                    Token::Number(index) => Expression::Index(Box::new(left), index),
                    Token::Sign("*") => {
                        each = true;
                        Expression::Each(Box::new(left))
                    }
                    Token::Sign("]") => return Err(ExpressionError::unsupported(offset, "flattening with `[]`")),
                    _ => return Err(ExpressionError::unsupported(offset, "what stands in these brackets")),
                };
                if matches!(self.peek(), Token::Sign(":")) {
                    return Err(ExpressionError::unsupported(offset, "a slice"));
                }
                self.expect("]")?;
            } else {
                return Ok(left);
            }
        }
    }

    fn primary(&mut self) -> Parsed {
        let offset = self.offset();
        match self.next() {
            Token::Sign("@") => Ok(Expression::Current),
            Token::Literal(value) => Ok(Expression::Literal(value)),
            Token::Number(number) => Ok(Expression::Literal(number.into())),
            Token::Binding(name) => Ok(Expression::Binding(name)),
            Token::Name(name) if matches!(self.peek(), Token::Sign("(")) => self.call(&name, offset),
            // JMESPath has no such words, and a field of this name is not what is meant.
            Token::Name(name) if matches!(name.as_str(), "true" | "false" | "null") => {
                Ok(Expression::Literal(serde_json::from_str(&name).unwrap_or_default()))
            }
            Token::Name(name) => Ok(Expression::Field(Box::new(Expression::Current), name)),
            Token::Sign("(") => {
                let inner = self.pipe()?;
                self.expect(")")?;
                Ok(inner)
            }
            Token::Sign("*") => Err(ExpressionError::unsupported(offset, "`*`")),
            Token::Sign("&") => Err(ExpressionError::unsupported(offset, "`&`")),
            _ => Err(self.back().unexpected()),
        }
    }

    fn call(&mut self, name: &str, offset: usize) -> Parsed {
        let Some((_, function, arity)) = Function::ALL.into_iter().find(|(n, ..)| *n == name) else {
            return Err(ExpressionError::unsupported(offset, &format!("the function `{name}`")));
        };
        self.expect("(")?;
        let mut arguments = Vec::new();
        while !self.take(")") {
            if !arguments.is_empty() {
                self.expect(",")?;
            }
            arguments.push(self.pipe()?);
        }
        if arguments.len() != arity {
            let plural = if arity == 1 { "" } else { "s" };
            return Err(ExpressionError::at(offset, &format!("`{name}` takes {arity} argument{plural}")));
        }
        Ok(Expression::Call(function, arguments))
    }

    fn peek(&self) -> &Token {
        &self.tokens[self.at].1
    }

    fn offset(&self) -> usize {
        self.tokens[self.at].0
    }

    /// The next token; `End` is never passed.
    fn next(&mut self) -> Token {
        let token = self.peek().clone();
        if token != Token::End {
            self.at += 1;
        }
        token
    }

    fn back(&mut self) -> &Self {
        if *self.peek() != Token::End {
            self.at -= 1;
        }
        self
    }

    fn take(&mut self, sign: &str) -> bool {
        let there = matches!(self.peek(), Token::Sign(s) if *s == sign);
        if there {
            self.at += 1;
        }
        there
    }

    fn expect(&mut self, sign: &str) -> Result<(), ExpressionError> {
        if self.take(sign) {
            return Ok(());
        }
        let error = self.unexpected();
        Err(ExpressionError { message: format!("{}; `{sign}` is expected", error.message), ..error })
    }

    fn unexpected(&self) -> ExpressionError {
        let message = match self.peek() {
            Token::End => "the expression ends too early".into(),
            Token::Sign(sign) => format!("unexpected `{sign}`"),
            Token::Name(name) => format!("unexpected `{name}`"),
            Token::Binding(name) => format!("unexpected `${name}`"),
            Token::Number(number) => format!("unexpected `{number}`"),
            Token::Literal(value) => format!("unexpected `{value}`"),
        };
        ExpressionError { offset: self.offset(), message }
    }
}
