// For storage.js: making elements, and the small arithmetic of drawing tensors.

function make(tag, className, ...inside) {
  const element = document.createElement(tag)
  if (className) element.className = className
  element.append(...inside.filter((part) => part !== undefined && part !== null && part !== "").map((part) => (part.nodeType ? part : String(part))))
  return element
}

// A sentence of the server with values in place of {names}; and its parts between bars.
const fill = (template, values = {}) => template.replace(/\{(\w+)\}/g, (_, name) => values[name])
const parts = (template, values) => template.split("|").map((part) => fill(part, values))
const counted = (number) => number.toLocaleString("en")

// Small markup as the server writes it: `code` and **bold**.
function marked(tag, className, text) {
  const parts = text.split(/(`[^`]+`|\*\*[^*]+\*\*)/).map((part) =>
    part.startsWith("`") ? make("code", "", part.slice(1, -1)) : part.startsWith("**") ? make("b", "", part.slice(2, -2)) : part,
  )
  return make(tag, className, ...parts)
}

function vector(tag, attributes, text) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag)
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value)
  if (text !== undefined) element.textContent = text
  return element
}

const subscript = (number) => String(number).replace(/\d/g, (digit) => "₀₁₂₃₄₅₆₇₈₉"[digit])
const bracketed = (numbers) => (numbers.length ? `[${numbers.join(", ")}]` : "")
const signed = (number) => (number < 0 ? `−${-number}` : `+${number}`)
const longest = (texts) => texts.reduce((most, text) => Math.max(most, text.length), 1)

// How a step in dimension d shows in a grid: right within a row, down between rows.
const way = (d, rank) => (d === rank - 1 ? "→" : d === rank - 2 ? "↓" : `i${subscript(d)} `)

// Width of the narrowest cell for a text of this length at 12 px.
const narrow = (length) => Math.ceil(3.4 + 7.2 * Math.max(length, 2))

// Ink of a cell, by its place in the storage: an element has the shade of its memory in every tensor.
const shade = (cell, total) => Math.round(9 + (total > 1 ? (36 * Math.min(cell, total - 1)) / (total - 1) : 14))

// Indices of the element with logical (row-major) number k.
function indices(shape, k) {
  const index = new Array(shape.length)
  for (let d = shape.length - 1; d >= 0; d--) {
    index[d] = k % shape[d]
    k = Math.floor(k / shape[d])
  }
  return index
}

// Columns so that a strip has even lines, each of whole rows of its first tensor or whole parts of one.
function fitColumns(count, most, row) {
  if (count <= most) return Math.max(count, 1)
  let unit = row
  for (let parts = 2; unit > most; parts++) if (row % parts === 0) unit = row / parts
  if (unit * 3 < most && row > most) unit = 1
  for (let lines = Math.ceil(count / most); ; lines++) {
    const columns = Math.ceil(count / lines / unit) * unit
    if (columns <= most) return columns
  }
}
