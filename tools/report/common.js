'use strict';
const data = JSON.parse(document.getElementById('data').textContent);
const SVG = document.querySelector('svg').namespaceURI;

function fill(node, attributes, children) {
  for (const [key, value] of Object.entries(attributes || {})) node.setAttribute(key, value);
  node.append(...children.filter(child => child !== null));  // names become text, never markup
  return node;
}
const html = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
const svg = (tag, attributes, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);
const at = selector => document.querySelector(selector);

const short = (x, digits = 4) => x === null ? '–' : String(Number(x.toPrecision(digits)));
const percent = part => (part > 0 && part < 0.001 ? '< 0.1' : short(100 * part, part > 0.9995 ? 5 : 3)) + ' %';
function bytes(count) {
  const [unit, size] = count >= 1e9 ? ['GB', 1e9] : count >= 1e6 ? ['MB', 1e6] : ['kB', 1e3];
  return short(count / size, 3) + ' ' + unit;
}
const plural = (count, word) => count + ' ' + word + (count === 1 ? '' : 's');
const filename = path => path.split('/').pop();
const sum = list => list.reduce((a, b) => a + b, 0);

/** A card with one number, what it counts, and lines below. */
const figure = (title, value, unit, ...lines) => html(
    'div', {class: 'card'}, html('h3', {}, title), html('strong', {}, value, ' ', html('small', {}, unit)),
    ...lines.map(line => html('p', {}, line)));

/** The first of `items` as rows, and a button for the rest. */
function rows(parent, items, make, most) {
  parent.replaceChildren(...items.slice(0, most).map(make));
  if (items.length <= most) return;
  const more = html('button', {}, 'Show all ' + items.length);
  more.onclick = () => more.replaceWith(...items.slice(most).map(make));
  parent.append(more);
}

function table(parent, columns, named, items, none) {
  if (items.length === 0) return parent.append(html('p', {}, none));
  const body = html('tbody', {});
  rows(
      body, items,
      item => html('tr', {}, ...item.map((cell, i) => html('td', named.includes(i) ? {class: 'name'} : {}, cell))),
      items.length);
  parent.append(
      html('table', {}, html('thead', {}, html('tr', {}, ...columns.map(column => html('th', {}, column)))), body));
}
