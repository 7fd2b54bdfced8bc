//! Types, and what structures and variants have in them.

use std::rc::Rc;

use super::Fault;
use super::lex::Token;
use super::parser::{DEPTH_MAX, Parser};
use super::types::{Integer, Label, Member, Path, Type};

/// The length of an array.
enum Length {
    Fixed(u64),
    Of(Path),
}

impl<'a> Parser<'a> {
    /// A type, and the words after it: the name of what is declared, where there is one. `has_name` says that the last
    /// of
    /// several words is that name and no part of the type's.
    pub(super) fn ty(&mut self, has_name: bool) -> Result<(Type, Option<&'a str>), Fault> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(self.wrong("type", "less nesting"));
        }
        let word = self.word().ok_or_else(|| self.wrong("type", "a type"))?;
        let built = match word {
            "integer" | "floating_point" | "string" | "struct" | "variant" | "enum" => {
                self.take()?;
                Some(match word {
                    "integer" => self.integer_type()?,
                    "floating_point" => self.float_type()?,
                    "string" => self.string_type()?,
                    "struct" => self.structure()?,
                    "variant" => self.variant()?,
                    _ => self.enumeration()?,
                })
            }
            _ => None,
        };
        let found = match built {
            Some(ty) => {
                let name = if has_name { Some(self.name("field")?) } else { None };
                (ty, name)
            }
            None => self.named(has_name)?,
        };
        self.depth = self.depth.saturating_sub(1);
        Ok(found)
    }

    /// A type by its name, which may be of several words.
    fn named(&mut self, has_name: bool) -> Result<(Type, Option<&'a str>), Fault> {
        let at = self.at();
        let mut words = Vec::new();
        while let Some(word) = self.word() {
            self.take()?;
            if word != "const" {
                words.push(word);
            }
            if words.len() > 16 {
                return Err(self.wrong("type", "fewer words"));
            }
        }
        let name = if has_name { words.pop() } else { None };
        let of = words.join(" ");
        let ty = self.lookup(&of).ok_or_else(|| Fault::new(at, "type", "a type that is declared", of.clone()))?;
        Ok((ty, name))
    }

    fn structure(&mut self) -> Result<Type, Fault> {
        let name = self.word().filter(|word| *word != "align");
        let at = self.at();
        if name.is_some() {
            self.take()?;
        }
        if !self.is("{") {
            let of = format!("struct {}", name.unwrap_or_default());
            return self.lookup(&of).ok_or_else(|| Fault::new(at, "struct", "one that is declared", of));
        }
        let members = self.members("struct")?;
        let mut align = 1;
        if self.word() == Some("align") {
            self.take()?;
            self.expect("(", "align")?;
            let wrong = self.wrong("align", "a power of two");
            let value = super::attributes::Value::Integer(self.integer("align")?);
            align = super::attributes::alignment(&value).ok_or(wrong)?;
            self.expect(")", "align")?;
        }
        let ty = Type::Structure(members, align);
        if let Some(name) = name {
            self.declare(format!("struct {name}"), ty.clone());
        }
        Ok(ty)
    }

    fn variant(&mut self) -> Result<Type, Fault> {
        let (name, at) = (self.word(), self.at());
        if name.is_some() {
            self.take()?;
        }
        let mut tag = self.tag()?;
        let members = if self.is("{") {
            let members = self.members("variant")?;
            if let Some(name) = name {
                self.declare(format!("variant {name}"), Type::Variant(Rc::clone(&members), tag.clone()));
            }
            members
        } else {
            let of = format!("variant {}", name.unwrap_or_default());
            match self.lookup(&of) {
                Some(Type::Variant(members, own)) => {
                    tag = tag.or(own);
                    members
                }
                _ => return Err(Fault::new(at, "variant", "one that is declared", of)),
            }
        };
        if tag.is_none() {
            tag = self.tag()?;
        }
        Ok(Type::Variant(members, tag))
    }

    /// `<path>`.
    fn tag(&mut self) -> Result<Option<Path>, Fault> {
        if !self.take_if("<")? {
            return Ok(None);
        }
        let path = self.path("tag")?;
        self.expect(">", "tag")?;
        Ok(Some(path))
    }

    fn members(&mut self, what: &str) -> Result<Rc<[Member]>, Fault> {
        self.enter(what)?;
        self.expect("{", what)?;
        let mut members = Vec::new();
        while !self.take_if("}")? {
            if self.declaration()? {
                continue;
            }
            let (ty, name) = self.ty(true)?;
            let name = name.ok_or_else(|| self.wrong(what, "a name"))?;
            let first = Member { name: name.into(), ty: self.dimensions(ty.clone())? };
            members.push(first);
            while self.take_if(",")? {
                let name = self.name(what)?.into();
                members.push(Member { name, ty: self.dimensions(ty.clone())? });
            }
            self.expect(";", what)?;
        }
        self.leave();
        Ok(members.into())
    }

    /// `[3]` and `[length]` after a name.
    fn dimensions(&mut self, mut ty: Type) -> Result<Type, Fault> {
        let mut lengths = Vec::new();
        while self.take_if("[")? {
            lengths.push(match self.word() {
                Some(_) => Length::Of(self.path("length")?),
                None => {
                    let wrong = self.wrong("length", "a length");
                    Length::Fixed(u64::try_from(self.integer("length")?).map_err(|_| wrong)?)
                }
            });
            self.expect("]", "length")?;
            if lengths.len() + self.depth > DEPTH_MAX {
                return Err(self.wrong("length", "fewer dimensions"));
            }
        }
        for length in lengths.into_iter().rev() {
            ty = match length {
                Length::Fixed(length) => Type::Array(Rc::new(ty), length),
                Length::Of(path) => Type::Sequence(Rc::new(ty), path),
            };
        }
        Ok(ty)
    }

    fn enumeration(&mut self) -> Result<Type, Fault> {
        let (name, at) = (self.word(), self.at());
        if name.is_some() {
            self.take()?;
        }
        let of = if self.take_if(":")? { Some(self.ty(false)?.0) } else { None };
        if !self.is("{") {
            let of = format!("enum {}", name.unwrap_or_default());
            return self.lookup(&of).ok_or_else(|| Fault::new(at, "enum", "one that is declared", of));
        }
        let integer: Rc<Integer> = match of.or_else(|| self.lookup("int")) {
            Some(Type::Integer(integer) | Type::Enumeration(integer, _)) => integer,
            _ => return Err(Fault::new(at, "enum", "an integer type", "none")),
        };
        let labels = self.labels()?;
        let ty = Type::Enumeration(integer, labels.into());
        if let Some(name) = name {
            self.declare(format!("enum {name}"), ty.clone());
        }
        Ok(ty)
    }

    fn labels(&mut self) -> Result<Vec<Label>, Fault> {
        self.expect("{", "enum")?;
        let (mut labels, mut next) = (Vec::new(), 0);
        while !self.take_if("}")? {
            let wrong = self.wrong("enum", "a label");
            let name = match self.take()? {
                Token::Word(word) => word.to_owned(),
                Token::Text(text) => text,
                _ => return Err(wrong),
            };
            let (mut first, mut last) = (next, next);
            if self.take_if("=")? {
                first = self.integer("enum")?;
                last = if self.take_if("...")? { self.integer("enum")? } else { first };
            }
            next = last.saturating_add(1);
            labels.push(Label { name, first, last });
            if !self.is("}") {
                self.expect(",", "enum")?;
            }
        }
        Ok(labels)
    }

    /// A declaration of a type, where one is next: `typealias`, `typedef`, or a named type without a field.
    pub(super) fn declaration(&mut self) -> Result<bool, Fault> {
        match self.word() {
            Some("typealias") => {
                self.take()?;
                let (ty, _) = self.ty(false)?;
                let ty = self.dimensions(ty)?;
                self.expect(":=", "typealias")?;
                let mut words = vec![self.name("typealias")?];
                while let Some(word) = self.word() {
                    self.take()?;
                    words.push(word);
                }
                self.expect(";", "typealias")?;
                self.declare(words.join(" "), ty);
                Ok(true)
            }
            Some("typedef") => {
                self.take()?;
                let (ty, name) = self.ty(true)?;
                let ty = self.dimensions(ty)?;
                self.expect(";", "typedef")?;
                self.declare(name.unwrap_or_default().to_owned(), ty);
                Ok(true)
            }
            _ => Ok(false),
        }
    }
}
