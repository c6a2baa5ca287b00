import React, { useState } from 'react';
/** Renders ünïcode. */
export class Größe extends Base {
  static #n = 1;
  count = 0;
  constructor() { super(); }
  async load() { return fetch(this.url); }
  onClick = () => { this.load(); };
}
export const App = ({ a }) => <Panel><Item x={1}/></Panel>;
export default App;
const helper = function () { return 1; };
Foo.prototype.bar = function (x) { return x; };
exports.baz = (y) => y;
module.exports = { helper };
function outer() { function inner() {} }
