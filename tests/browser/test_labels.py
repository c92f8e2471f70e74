"""Nothing that is written on a page is cut, runs out of its picture, or fades into what it is written on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Page

from core.planning.comparison.entry import examples, pack
from core.planning.presets import DECISION_PRESETS, MEMORY_PRESETS, PRESETS, SEARCH_PRESETS, SWEEP_PRESETS
from pages.common.comparison_list import IN_LINK
from pages.common.links import address
from pages.common.registry import COMPARE, COMPUTE, DECIDE, MEMORY, PAGES, PARALLEL, WHAT_IF, PageSpec
from tests.app.plan_pages import linked, opened
from tests.browser.conftest import settle, still

pytestmark = pytest.mark.browser

WRITTEN = """() => {
  const found = []
  const seen = e => e.checkVisibility({ visibilityProperty: true, opacityProperty: true })
  const long = 60 // letters of a field that nobody expects to see whole
  const main = document.querySelector('[data-testid=stMainBlockContainer]')
  const clips = (text, e) => {
    for (let box = e; box; box = box.assignedSlot ?? box.parentElement ?? box.getRootNode().host) {
      const { overflowX, overflowY, display } = getComputedStyle(box), edge = box.getBoundingClientRect()
      if (display === 'inline') continue
      if (['auto', 'scroll'].includes(overflowX)) return false
      if (box === main && text.right > edge.right + 1) return true
      const across = Math.max(text.right - edge.right, edge.left - text.left)
      const down = Math.max(text.bottom - edge.bottom, edge.top - text.top)
      if ((overflowX !== 'visible' && across > 1) || (overflowY !== 'visible' && edge.height && down > 3)) return true
    }
    return false
  }
  const walk = root => root.querySelectorAll('*').forEach(e => {
    if (e.shadowRoot) walk(e.shadowRoot)
    if (!(e instanceof HTMLElement) || e.closest('.katex, .js-plotly-plot, [data-testid=stSkipToContent]')) return
    if (!seen(e)) return
    const own = [...e.childNodes].some(n => n.nodeType === Node.TEXT_NODE && /[^\\s\\u200b]/.test(n.textContent))
    const onAxes = e.closest('.st-key-w_xs, .st-key-w_ys') // lists whose values all stand on the axes under them
    if (e instanceof HTMLInputElement && e.type === 'text' && !onAxes) {
      const text = e.value || e.placeholder
      if (text.length <= long && e.clientWidth && e.scrollWidth > e.clientWidth) found.push(`${e.ariaLabel}: ${text}`)
    }
    if (!own) return
    const words = document.createRange()
    words.selectNodeContents(e)
    const text = words.getBoundingClientRect()
    if (text.width > 1 && text.height > 1 && clips(text, e)) found.push(`${e.tagName}: ${e.textContent.trim()}`)
  })
  walk(document.querySelector('.stApp'))
  document.querySelectorAll('.np-scroll').forEach(e => {
    const over = e.scrollWidth - e.clientWidth
    if (over > 0) found.push(`the table ${e.ariaLabel} is ${over} px wider than its place`)
  })
  return found
}"""
"""What is cut: fields with more text than they show, texts that reach over the edge of a box which hides it, and tables
that have to be scrolled."""

DRAWN = """() => {
  const numbers = colour => (colour.match(/[\\d.]+/g) ?? []).map(Number)
  const light = ([r, g, b]) => {
    const part = v => (v / 255 <= 0.03928 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4)
    return 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b)
  }
  const contrast = (one, other) => {
    const [high, low] = [light(one), light(other)].sort((a, b) => b - a)
    return (high + 0.05) / (low + 0.05)
  }
  const over = (top, under, share) => top.slice(0, 3).map((v, i) => v * share + under[i] * (1 - share))
  const page = numbers(getComputedStyle(document.querySelector('.stApp')).backgroundColor).slice(0, 3)
  const found = []
  document.querySelectorAll('.js-plotly-plot').forEach(plot => {
    const frame = plot.querySelector('.main-svg').getBoundingClientRect()
    const shapes = [...plot.querySelectorAll('path, rect, circle')].filter(e => !e.closest('defs'))
    const under = (text, x, y) => shapes.reduce((ground, shape) => {
      const box = shape.getBoundingClientRect(), style = getComputedStyle(shape)
      if (x < box.left || x > box.right || y < box.top || y > box.bottom || style.fill === 'none') return ground
      if (!(text.compareDocumentPosition(shape) & Node.DOCUMENT_POSITION_PRECEDING)) return ground
      if (!shape.isPointInFill(new DOMPoint(x, y).matrixTransform(shape.getScreenCTM().inverse()))) return ground
      const colour = numbers(style.fill)
      let share = Number(style.fillOpacity) * (colour[3] ?? 1)
      for (let e = shape; e !== plot; e = e.parentElement) share *= Number(getComputedStyle(e).opacity)
      return over(colour, ground, share)
    }, page)
    plot.querySelectorAll('text').forEach(text => {
      const box = text.getBoundingClientRect(), words = text.textContent.trim()
      if (!words || !box.width || text.closest('.hoverlayer')) return
      if (!text.checkVisibility({ visibilityProperty: true, opacityProperty: true })) return
      const beside = [frame.left - box.left, box.right - frame.right, frame.top - box.top, box.bottom - frame.bottom]
      const out = Math.max(...beside)
      if (out > 1.5) found.push(`${words} is ${Math.round(out)} px out of its picture`)
      const inks = [text, ...text.querySelectorAll('tspan')].filter(e => e.textContent.trim())
      const opacity = Number(getComputedStyle(text).opacity)
      for (const part of [0.15, 0.5, 0.85]) {
        const ground = under(text, box.left + part * box.width, box.top + box.height / 2)
        for (const ink of new Set(inks.map(e => getComputedStyle(e).fill))) {
          const seen = contrast(over(numbers(ink), ground, (numbers(ink)[3] ?? 1) * opacity), ground)
          if (seen < 4.5) found.push(`${words} in ${ink} on ${ground.map(Math.round)}: contrast ${seen.toFixed(1)}`)
        }
      }
    })
  })
  return [...new Set(found)]
}"""
"""What of the charts' type is cut at the edge of the picture, or has too little contrast to what lies under it."""

TALES: Mapping[str, Mapping[str, Mapping[str, str]]] = {
    COMPUTE.id: {
        **PRESETS,
        **{find: {"find": find, "n": "119.3B", "count": "200,000,000"} for find in ("tokens", "parameters", "MFU")},
    },
    MEMORY.id: MEMORY_PRESETS,
    PARALLEL.id: SEARCH_PRESETS,
    WHAT_IF.id: SWEEP_PRESETS,
    DECIDE.id: DECISION_PRESETS,
}
"""Page → what is asked on it: its presets, and long numbers."""


def compared() -> str:
    """The address of Compare with three plans."""
    return address(COMPARE, {}, {IN_LINK: pack(examples())})


def links(spec: PageSpec) -> dict[str, str]:
    """Addresses of a page: all that can be opened, its presets; Compare’s with plans."""
    texts = {name: text.replace("false", "true") for name, text in linked(opened(spec, {})).items()}
    tales = {
        name: {f"{spec.prefix}_{field}": text for field, text in fields.items()} | {"v": texts["v"]}
        for name, fields in TALES.get(spec.id, {}).items()
    }
    asked = {name: f"{spec.url_path}?{urlencode(fields)}" for name, fields in {"all open": texts, **tales}.items()}
    return asked | ({"three plans": compared()} if spec is COMPARE else {})


PAPER = {"light": "rgb(251, 247, 238)", "dark": "rgb(23, 34, 44)"}
ON_PAPER = """([paper, other]) => {
  const colour = e => getComputedStyle(e).backgroundColor
  const charts = [...document.querySelectorAll('.js-plotly-plot .main-svg')]
  return colour(document.querySelector('.stApp')) === paper && !charts.some(chart => colour(chart) === other)
}"""
"""The page is of one theme and no chart, which the server draws anew, is of the other any more."""


@pytest.mark.parametrize("spec", PAGES, ids=lambda spec: spec.id)
def test_nothing_that_is_written_is_cut(open_page: Callable[..., Page], server: str, spec: PageSpec) -> None:
    """All that is open narrow and wide, in both themes; what else there is by turns."""
    page, found = open_page(spec.url_path), list[str]()
    looks = [(1280, "light"), (1600, "dark")]
    for name, link in links(spec).items():
        looks.reverse()  # the one that the page before was left in comes first
        for turn, (width, theme) in enumerate(looks if name == "all open" else looks[:1]):
            page.set_viewport_size({"width": width, "height": 900})
            page.emulate_media(color_scheme=theme)
            if not turn:
                page.goto(f"{server}/{link}")
                settle(page)
            page.wait_for_function(ON_PAPER, arg=[PAPER[theme], *(PAPER[name] for name in PAPER if name != theme)])
            settle(page)
            still(page)
            found += [f"{name} at {width}: {what}" for what in [*page.evaluate(WRITTEN), *page.evaluate(DRAWN)]]
    assert found == [], "\n".join(found)


TOUCHING = """() => [...document.querySelectorAll('.js-plotly-plot')].flatMap(plot => {
  const seen = { visibilityProperty: true, opacityProperty: true }
  const texts = [...plot.querySelectorAll('text')]
    .filter(e => e.textContent.trim() && !e.closest('.hoverlayer, .modebar') && e.checkVisibility(seen))
    .map(e => [e.textContent.trim(), e.getBoundingClientRect()])
  return texts.flatMap(([text, a], i) => texts.slice(i + 1).flatMap(([other, b]) => {
    const across = Math.min(a.right, b.right) - Math.max(a.left, b.left)
    const down = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top)
    return across > 3 && down > 4 ? [`${text} stands on ${other}`] : []
  }))
})"""


@pytest.mark.long
@pytest.mark.parametrize("spec", PAGES, ids=lambda spec: spec.id)
def test_charts_on_a_phone_are_whole_and_their_labels_apart(open_page: Callable[..., Page], spec: PageSpec) -> None:
    page = open_page(links(spec)["all open"], width=390)
    settle(page)
    still(page)
    assert [*page.evaluate(DRAWN), *page.evaluate(TOUCHING)] == []
    assert page.evaluate("document.querySelector('[data-testid=stMain]').scrollWidth") <= 390
