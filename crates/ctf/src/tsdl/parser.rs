//! The parser's state: a token ahead, and the names of types in the blocks around it.

use anytrace_core::hash::Map;

use super::Fault;
use super::lex::{Lexer, Token};
use super::types::{Path, Type};

/// Deepest nesting of types and blocks.
pub(super) const DEPTH_MAX: usize = 48;

pub(super) struct Parser<'a> {
    lexer: Lexer<'a>,
    ahead: Result<(Token<'a>, usize), Fault>,
    /// Where the token ahead ended when it was taken.
    last: usize,
    has_semicolon: bool,
    /// Braces that are open.
    braces: usize,
    pub(super) depth: usize,
    scopes: Vec<Map<String, Type>>,
}

impl<'a> Parser<'a> {
    pub(super) fn new(text: &'a [u8]) -> Self {
        let mut lexer = Lexer::new(text);
        let ahead = lexer.next();
        Self { lexer, ahead, last: 0, has_semicolon: false, braces: 0, depth: 0, scopes: vec![Map::default()] }
    }

    /// The next token.
    pub(super) fn peek(&self) -> Result<&Token<'a>, Fault> {
        match &self.ahead {
            Ok((token, _)) => Ok(token),
            Err(fault) => Err(fault.clone()),
        }
    }

    /// Where it begins.
    pub(super) fn at(&self) -> usize {
        match &self.ahead {
            Ok((_, at)) => *at,
            Err(fault) => fault.at,
        }
    }

    /// Where the last token that was taken ends, at most.
    pub(super) fn passed(&self) -> usize {
        self.last
    }

    /// True where a declaration has just ended.
    pub(super) fn is_ended(&self) -> bool {
        self.braces == 0 && self.has_semicolon
    }

    pub(super) fn take(&mut self) -> Result<Token<'a>, Fault> {
        // The next token was read to see what it is.
        self.last = self.lexer.at();
        let next = self.lexer.next();
        let (token, _) = std::mem::replace(&mut self.ahead, next)?;
        self.has_semicolon = token == Token::Mark(";");
        match token {
            Token::Mark("{") => self.braces += 1,
            Token::Mark("}") => self.braces = self.braces.saturating_sub(1),
            _ => {}
        }
        Ok(token)
    }

    pub(super) fn is(&self, mark: &str) -> bool {
        matches!(&self.ahead, Ok((Token::Mark(own), _)) if *own == mark)
    }

    pub(super) fn word(&self) -> Option<&'a str> {
        match &self.ahead {
            Ok((Token::Word(word), _)) => Some(*word),
            _ => None,
        }
    }

    /// Takes a mark if it is next.
    pub(super) fn take_if(&mut self, mark: &str) -> Result<bool, Fault> {
        let is = self.is(mark);
        if is {
            self.take()?;
        }
        Ok(is)
    }

    pub(super) fn expect(&mut self, mark: &'static str, what: &str) -> Result<(), Fault> {
        if self.take_if(mark)? { Ok(()) } else { Err(self.wrong(what, mark)) }
    }

    /// A complaint about the next token.
    #[cold]
    pub(super) fn wrong(&self, field: &str, expected: &str) -> Fault {
        match &self.ahead {
            Err(fault) => fault.clone(),
            Ok((token, at)) => {
                let found = match token {
                    Token::Word(word) => (*word).to_owned(),
                    Token::Number(number) => number.to_string(),
                    Token::Text(text) => format!("\"{}\"", text.chars().take(40).collect::<String>()),
                    Token::Mark(mark) => (*mark).to_owned(),
                    Token::End => "the end of the metadata".to_owned(),
                };
                Fault::new(*at, field, expected, found)
            }
        }
    }

    pub(super) fn name(&mut self, what: &str) -> Result<&'a str, Fault> {
        let word = self.word().ok_or_else(|| self.wrong(what, "a name"))?;
        self.take()?;
        Ok(word)
    }

    /// An integer with its sign.
    pub(super) fn integer(&mut self, what: &str) -> Result<i128, Fault> {
        let is_negative = self.take_if("-")?;
        if !is_negative {
            self.take_if("+")?;
        }
        let wrong = self.wrong(what, "an integer");
        match self.take()? {
            Token::Number(number) => Ok(if is_negative { -number } else { number }),
            _ => Err(wrong),
        }
    }

    /// Names with dots between them.
    pub(super) fn path(&mut self, what: &str) -> Result<Path, Fault> {
        let mut path = vec![self.name(what)?.to_owned()];
        while self.take_if(".")? {
            path.push(self.name(what)?.to_owned());
            if path.len() > DEPTH_MAX {
                return Err(self.wrong(what, "fewer names"));
            }
        }
        Ok(path.into())
    }

    /// Passes the rest of a declaration that cannot be read: to the next `;` outside of all braces. False at the end.
    pub(super) fn recover(&mut self) -> bool {
        self.scopes.truncate(1);
        self.depth = 0;
        loop {
            match self.take() {
                Ok(Token::End) => return false,
                Ok(Token::Mark(";")) if self.braces == 0 => return true,
                _ => {}
            }
        }
    }

    /// Types declared from here on are known until [`Self::leave`].
    pub(super) fn enter(&mut self, what: &str) -> Result<(), Fault> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(self.wrong(what, "less nesting"));
        }
        self.scopes.push(Map::default());
        Ok(())
    }

    pub(super) fn leave(&mut self) {
        self.depth = self.depth.saturating_sub(1);
        self.scopes.pop();
    }

    pub(super) fn declare(&mut self, name: String, ty: Type) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.insert(name, ty);
        }
    }

    pub(super) fn lookup(&self, name: &str) -> Option<Type> {
        self.scopes.iter().rev().find_map(|scope| scope.get(name)).cloned()
    }
}
