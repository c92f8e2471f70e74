"""What stands on the first screen of a page, as one reads it."""

from __future__ import annotations

import re

from playwright.sync_api import Page

IN_SIGHT = r"""() => {
  const lines = []
  let last = null
  const block = e => {
    while (e && e.tagName !== 'SMALL' && getComputedStyle(e).display.startsWith('inline')) e = e.parentElement
    return e
  }
  const top = document.querySelector('[data-testid=stHeader]')?.getBoundingClientRect().bottom ?? 0
  const walk = root => {
    for (const child of root.childNodes) {
      if (child.nodeType === Node.ELEMENT_NODE) {
        if (['STYLE', 'SCRIPT'].includes(child.tagName) || child.matches('.katex-html')) continue
        if (child.tagName === 'INPUT' || child.tagName === 'TEXTAREA') field(child)
        if (child.shadowRoot) walk(child.shadowRoot)
        walk(child)
      } else if (child.nodeType === Node.TEXT_NODE && /\S/.test(child.textContent)) text(child)
    }
  }
  const inside = box => box.width > 1 && box.height > 1 && box.top >= top - 24 && box.bottom <= innerHeight
    && box.left >= 0 && box.right <= innerWidth + 1
  const text = node => {
    const holder = node.parentElement ?? node.getRootNode().host
    if (!holder || !holder.checkVisibility({ visibilityProperty: true, opacityProperty: true })) return
    const range = document.createRange()
    range.selectNodeContents(node)
    if (!inside(range.getBoundingClientRect())) return
    const raised = holder.closest('sup') ? `^(${node.textContent})` : node.textContent
    const of = holder.namespaceURI.endsWith('svg') ? node : block(holder)
    lines.push((of === last ? '' : '\n') + raised)
    last = of
  }
  const field = one => {
    if (one.checkVisibility() && inside(one.getBoundingClientRect())) lines.push('\n' + one.value)
    last = null
  }
  walk(document.querySelector('[data-testid=stMain]'))
  return lines.join('')
}"""
"""The text of the page that can be read without scrolling, a line for each block; what is cut off is left out."""

_RAISED = str.maketrans("0123456789-−+", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁻⁺")


def in_sight(page: Page) -> str:
    """What can be read without scrolling, with plain spaces, and what is raised as ² and ⁻³ are."""
    text = re.sub(r"\^\(([^)]*)\)", lambda raised: raised[1].translate(_RAISED), page.evaluate(IN_SIGHT))
    return re.sub(r"[^\S\n]+", " ", text)
