// Terms of the field where they stand: their first appearance in each part of a page is underlined, and hover, focus
// and tap show its definition. Names and definitions are those of the Glossary (pages/common/terms.py puts them on the
// page once); the text itself stays as it is.
const MARKABLE = ".np-answer, .np-note, .np-takeaway, .np-good, .np-lead, .np-table caption, .np-table td, .np-facts dt"
const NOT_IN = "a, button, code, sup, .np-term, .katex, .np-glossary, .np-bar"
const PART = "[data-testid=stExpander], [data-testid=stMain]"
const PAUSE = 150 // ms after the last change, so that a page that is being drawn is gone through once

function markTerms() {
  if (document.napkinTerms) return
  document.napkinTerms = true
  let due
  const later = () => {
    clearTimeout(due)
    due = setTimeout(mark, PAUSE)
  }
  new MutationObserver(later).observe(document.body, { childList: true, subtree: true })
  later()
  const tip = document.createElement("div")
  tip.id = "np-tip"
  tip.setAttribute("role", "tooltip")
  tip.hidden = true
  const termOf = (event) => (event.target instanceof Element ? event.target.closest(".np-term, #np-tip") : null)
  const show = (event) => {
    const term = termOf(event)
    if (term === tip) return
    tip.hidden = !term
    if (term) place(tip, term)
  }
  for (const event of ["mouseover", "focusin", "click"]) document.addEventListener(event, show)
  document.addEventListener("focusout", () => (tip.hidden = true))
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || tip.hidden) return
    tip.hidden = true
    event.preventDefault()
  }, true)
}

function place(tip, term) {
  const app = document.querySelector(".stApp")
  if (tip.parentElement !== app) app.append(tip)
  tip.textContent = document.getElementById(term.getAttribute("aria-describedby"))?.textContent
  const at = term.getBoundingClientRect()
  const { offsetWidth: width, offsetHeight: height } = tip
  tip.style.left = `${Math.max(8, Math.min(at.left, innerWidth - width - 8))}px`
  tip.style.top = `${at.bottom + height + 8 > innerHeight ? Math.max(8, at.top - height) : at.bottom}px`
}

let pattern = null
let ids = []

function mark() {
  const list = document.querySelector(".np-terms")
  if (!list) return
  if (!pattern) {
    ids = [...list.children].map((one) => one.id)
    pattern = new RegExp(list.dataset.pattern, "g")
  }
  const seen = new Map()
  for (const block of document.querySelectorAll("[data-testid=stMain] [data-testid=stHtml]")) {
    const part = block.closest(PART)
    if (!seen.has(part)) seen.set(part, new Set())
    for (const within of block.querySelectorAll(MARKABLE)) markIn(within, seen.get(part))
  }
}

function markIn(within, seen) {
  for (const term of within.querySelectorAll(".np-term")) seen.add(term.getAttribute("aria-describedby"))
  const walker = document.createTreeWalker(within, NodeFilter.SHOW_TEXT)
  const texts = []
  while (walker.nextNode()) if (!walker.currentNode.parentElement.closest(NOT_IN)) texts.push(walker.currentNode)
  for (const node of texts) {
    const made = []
    let from = 0
    for (const found of node.data.matchAll(pattern)) {
      const id = ids[found.slice(1).findIndex((group) => group !== undefined)]
      if (seen.has(id)) continue
      seen.add(id)
      const term = document.createElement("span")
      term.className = "np-term"
      term.tabIndex = 0
      term.setAttribute("role", "button")
      term.setAttribute("aria-describedby", id)
      term.textContent = found[0]
      made.push(node.data.slice(from, found.index), term)
      from = found.index + found[0].length
    }
    if (made.length) node.replaceWith(...made, node.data.slice(from))
  }
}
