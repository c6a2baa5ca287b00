use std::{collections::HashMap, fmt::{self, Display as D}};
use crate::shop::*;
pub use self::inner::Thing;
mod inner;
extern crate serde;

/// A stock. Keeps things.
#[derive(Debug, Clone)]
pub struct Lager<T: D> {
    /// count of them
    pub anzahl: u32,
    teile: HashMap<String, T>,
}
pub(crate) enum Art { Eins, Zwei(u8), Drei { x: i32 } }
pub trait Zähler: Display {
    type Out;
    const MAX: usize = 3;
    fn zähle(&self) -> usize;
    fn zwei(&self) -> usize { 2 * self.zähle() }
}
impl<T> Zähler for Lager<T> where T: D {
    fn zähle(&self) -> usize { self.teile.len() }
}
impl Lager<u8> {
    /// Makes one.
    #[must_use]
    pub fn neu(x: Foo) -> Self { Self { anzahl: 0, teile: HashMap::new() } }
    fn privat() { helper::<u8>(1); println!("x"); }
}
pub const GRENZE: usize = 10;
static mut COUNTER: u32 = 0;
type Kurz = Lager<u8>;
macro_rules! mac { () => {} }
pub mod sub { pub fn tief() { fn lokal() {} } }
#[test]
fn t() { Lager::neu(Foo{}); }
