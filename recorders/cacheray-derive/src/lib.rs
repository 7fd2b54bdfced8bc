//! `#[derive(TraceType)]` for `anytrace-recorder-cacheray`.

use proc_macro::TokenStream;
use quote::quote;
use syn::{Data, DeriveInput, Error, Field, Fields, Index, LitStr, Member, Result, Type};

/// Describes a type's name, size and fields to the recorder of cacheray traces.
///
/// The name is the type's path; `#[trace(name = "struct.Node")]` sets another one, for instance that of the
/// corresponding C type. Enums have a name and a size, but no fields: their layout is up to the compiler.
#[proc_macro_derive(TraceType, attributes(trace))]
pub fn trace_type(input: TokenStream) -> TokenStream {
    let input = syn::parse_macro_input!(input as DeriveInput);
    derive(&input).unwrap_or_else(Error::into_compile_error).into()
}

fn derive(input: &DeriveInput) -> Result<proc_macro2::TokenStream> {
    let ident = &input.ident;
    let (generics, arguments, bounds) = input.generics.split_for_impl();
    let name = match name(input)? {
        Some(name) => quote!(#name),
        None => quote!(::core::any::type_name::<Self>()),
    };
    let (shape, fields) = match &input.data {
        Data::Struct(data) => (quote!(Struct), members(&data.fields)),
        Data::Union(data) => (quote!(Union), data.fields.named.iter().map(named).collect()),
        Data::Enum(_) => (quote!(Enum), Vec::new()),
    };
    let described = fields.iter().map(|(member, kind)| {
        let text = match member {
            Member::Named(name) => name.to_string().trim_start_matches("r#").to_owned(),
            Member::Unnamed(index) => index.index.to_string(),
        };
        quote! {
            ::anytrace_cacheray_recorder::Field {
                name: #text,
                type_name: ::core::any::type_name::<#kind>(),
                offset: ::core::mem::offset_of!(Self, #member),
                size: ::core::mem::size_of::<#kind>(),
            }
        }
    });
    Ok(quote! {
        impl #generics ::anytrace_cacheray_recorder::TraceType for #ident #arguments #bounds {
            const SHAPE: ::anytrace_cacheray_recorder::Shape = ::anytrace_cacheray_recorder::Shape::#shape;

            fn name() -> &'static str {
                #name
            }

            fn fields() -> ::std::vec::Vec<::anytrace_cacheray_recorder::Field> {
                ::std::vec![#(#described),*]
            }
        }
    })
}

/// The name of the attribute, if there is one.
fn name(input: &DeriveInput) -> Result<Option<String>> {
    let mut found = None;
    for attribute in input.attrs.iter().filter(|attribute| attribute.path().is_ident("trace")) {
        attribute.parse_nested_meta(|meta| {
            if !meta.path.is_ident("name") {
                return Err(meta.error("expected `name = \"…\"`"));
            }
            let text: LitStr = meta.value()?.parse()?;
            if text.value().is_empty() {
                return Err(Error::new(text.span(), "an empty name distinguishes no types"));
            }
            found = Some(text.value());
            Ok(())
        })?;
    }
    Ok(found)
}

fn members(fields: &Fields) -> Vec<(Member, Type)> {
    match fields {
        Fields::Named(fields) => fields.named.iter().map(named).collect(),
        Fields::Unnamed(fields) => {
            let numbered = fields.unnamed.iter().enumerate();
            numbered.map(|(n, field)| (Member::Unnamed(Index::from(n)), field.ty.clone())).collect()
        }
        Fields::Unit => Vec::new(),
    }
}

fn named(field: &Field) -> (Member, Type) {
    let ident = field.ident.clone().map_or_else(|| Member::Unnamed(Index::from(0)), Member::Named);
    (ident, field.ty.clone())
}
