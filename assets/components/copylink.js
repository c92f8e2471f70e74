// "Copy link": puts the page's address with every field spelled out on the clipboard. Standing on every page, it also
// keeps the browser's history to one entry a page, redraws the page when the theme is switched, serves the tables, tells
// the server which of its answers is on screen, puts what is typed into the address, and remembers how far one came on
// the path of exercises.

const isAside = (event) => event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey

// Streamlit pushes a history entry for every single field that changes, so that Back would undo a preset field by
// field. Pushes that stay on the page replace its entry instead: Back then leaves the page, and finds the inputs of
// the page before as they were. On leaving, Streamlit first drops a page's fields from its address, and goes on once
// the server has answered, however long that takes; the fields are then put back.
function oneEntryAPage() {
  if (history.napkin) return
  history.napkin = true
  const push = history.pushState.bind(history)
  const replace = history.replaceState.bind(history)
  let path = location.pathname
  let left = null
  let leaving = false
  addEventListener("click", (event) => {
    left = event.target.closest?.("a[href]") ? { state: history.state, href: location.href } : null
  }, true)
  history.replaceState = (...change) => leaving || replace(...change)
  history.pushState = (state, unused, url) => {
    const target = new URL(url ?? location.href, location.href)
    if (target.pathname === location.pathname) {
      const fewer = target.searchParams.size < new URLSearchParams(location.search).size
      if (left && !fewer) left = { state, href: target.href }
      history.replaceState(state, unused, url)
    } else {
      if (left) history.replaceState(left.state, "", left.href)
      left = null
      push(state, unused, url)
    }
    path = location.pathname
  }
  // A link that spells out defaults loads as several entries, one for each field that Streamlit takes out of the
  // address before this script is there. Back passes over them all, in one step that is counted from here: asking
  // twice would go too far on a slow server. Streamlit answers the same event, and were it to rewrite the address
  // meanwhile, the step would be stopped.
  let inside = false
  addEventListener("popstate", () => {
    leaving = location.pathname === path && !inside
    if (leaving) history.go(-entriesOfThisPage())
    path = location.pathname
  })
  for (const event of ["pointerdown", "keydown"]) addEventListener(event, () => (leaving = false), true)
  // A link to another page of planning opens it as Back does, in this session and without loading the app again.
  addEventListener("click", (event) => {
    const link = event.target.closest?.("a.np-in")
    if (!link || isAside(event) || event.defaultPrevented || link.pathname === location.pathname) return
    event.preventDefault()
    if (left) history.replaceState(left.state, "", left.href)
    left = null
    push(null, "", link.href)
    path = location.pathname
    inside = true
    dispatchEvent(new PopStateEvent("popstate", { state: null }))
    inside = false
    document.querySelector("[data-testid=stMain]")?.scrollTo(0, 0)
  })
}

// Streamlit closes an open box, and sends what was typed last, after a click has reached its link, and requests a rerun
// of the page that is left. That request would follow the one for the next page and undo it. So a link waits for both.
const BOX = "[data-testid=stPopoverBody]"

function linksWait() {
  if (window.napkinLinksWait) return
  window.napkinLinksWait = true
  let followed = null
  addEventListener("click", (event) => {
    const link = event.target.closest?.("a[href]:not([target=_blank], [download])")
    if (!link || link === followed || isAside(event)) return
    event.preventDefault()
    event.stopImmediatePropagation()
    if (!link.closest(BOX)) document.dispatchEvent(new MouseEvent("click")) // which closes a box
    setTimeout(() => {
      followed = link
      link.click()
      followed = null
    })
  }, true)
}

function entriesOfThisPage() {
  if (!window.navigation) return 1
  const here = navigation.currentEntry.index
  const other = (entry, i) => i < here && new URL(entry.url).pathname !== location.pathname
  return here - navigation.entries().findLastIndex(other)
}

// Every request for a rerun says which answer the visitor had on screen (pages/streamlit_patches/stale_values.py), as
// one more of the page's fields. Parts of a message that are put after it in protobuf's wire format are read as if they
// stood in it; a request for a rerun begins with the number of its kind.
const RERUN = 11
let seen = 0

function sayWhatIsOnScreen() {
  if (WebSocket.prototype.napkin) return
  WebSocket.prototype.napkin = true
  const send = WebSocket.prototype.send
  const part = (number, ...bytes) => [(number << 3) | 2, bytes.length, ...bytes]
  const text = (number, words) => part(number, ...new TextEncoder().encode(words))
  WebSocket.prototype.send = function (message) {
    if (!seen || !(message instanceof Uint8Array) || message[0] !== part(RERUN)[0]) return send.call(this, message)
    const field = [...text(1, "napkin:seen"), ...text(6, String(seen))]
    const added = part(RERUN, ...part(2, ...part(1, ...field)))
    const whole = new Uint8Array(message.length + added.length)
    whole.set(message)
    whole.set(added, message.length)
    send.call(this, whole)
  }
}

// A link may name the part of the page that it is about. That part stands still only when all above it is drawn, so it
// is brought into sight again for a while, until the visitor does something.
const STILL_DRAWING = 4000

function landAt(name) {
  if (!name || history.landed) return
  history.landed = true
  const part = document.getElementsByClassName(`st-key-${name}`)[0] ?? document.getElementById(name) ?? document.querySelector(`.${CSS.escape(name)}`)
  if (!part) return
  part.style.scrollMarginTop = "3rem" // clear of Streamlit's bar
  const bring = () => (part.querySelector(".np-notes > [data-now=now]") ?? part).scrollIntoView() // notes: the slide on the wall
  const again = setInterval(bring, 100)
  const stop = () => clearInterval(again)
  setTimeout(stop, STILL_DRAWING)
  for (const event of ["wheel", "touchstart", "pointerdown", "keydown"]) addEventListener(event, stop, true)
  bring()
}

// What is handed in as a whole is answered at the top of the page.
function toTheAnswer() {
  if (window.napkinHandsIn) return
  window.napkinHandsIn = true
  const button = "[data-testid=stBaseButton-primaryFormSubmit]"
  addEventListener("click", ({ target }) => target.closest?.(button) && document.querySelector("[data-testid=stMain]").scrollTo(0, 0))
}

// An answer may put another text into a box whose whole text a person has just selected. It is selected again: what is
// typed next would be put behind it.
function keepSelected() {
  if (document.napkinSelected) return
  document.napkinSelected = true
  let all = null
  document.addEventListener("selectionchange", () => {
    const box = document.activeElement
    if (all && all.box === box && box.value !== all.text) box.select()
    all = box.selectionStart === 0 && box.selectionEnd === box.value.length ? { box, text: box.value } : null
  })
  document.addEventListener("input", () => (all = null), true)
}

// Typed text is written into the address at once, as Streamlit does for fields that it binds itself. A plan's fields
// are not bound (pages/common/inputs.py), and a reload may come before the server's answer names them.
let inTheLink = new URLSearchParams()

function typedIsInTheAddress() {
  if (document.napkinTyped) return
  document.napkinTyped = true
  const put = ({ target: box, key = "Enter" }) => {
    const name = box.closest?.("[class*=st-key-]")?.className.match(/st-key-(\S+)/)[1]
    if (key !== "Enter" || !inTheLink.has(name) || !box.matches("input[type=text]:not([role])")) return
    const here = new URL(location.href)
    if ((here.searchParams.get(name) ?? inTheLink.get(name)) === box.value) return
    here.searchParams.set(name, box.value)
    history.replaceState(history.state, "", here)
  }
  for (const event of ["change", "keydown"]) document.addEventListener(event, put)
}

// How far a visitor has come on the path of exercises stands in the address; the browser keeps it for the next visit.
const STEPS = "napkin:steps"

function keepSteps() {
  const here = new URL(location.href)
  if (here.searchParams.get("e_how") !== "follow the path") return
  const [now, kept] = [here.searchParams.get("steps"), localStorage.getItem(STEPS)]
  if (now) localStorage.setItem(STEPS, now)
  else if (/[^;]/.test(kept ?? "")) {
    here.searchParams.set("steps", kept)
    location.replace(here)
  }
}

export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".root")
  linksWait()
  oneEntryAPage()
  sayWhatIsOnScreen()
  landAt(data.at)
  seen = data.answer
  inTheLink = new URLSearchParams(data.query)
  typedIsInTheAddress()
  sortAndDownloadTables()
  markTerms()
  toTheAnswer()
  keepSelected()
  stepWithKeys(data.projector, (index) => setTriggerValue("step", index))
  // The app's own style follows a moment after this call. Asking once per theme is enough, and cannot go in circles.
  setTimeout(() => {
    keepSteps()
    const theme = getComputedStyle(root).colorScheme
    if (theme === data.drawn) delete root.dataset.asked
    else if (data.drawn && theme !== root.dataset.asked) {
      root.dataset.asked = theme
      setTriggerValue("theme", theme)
    }
  }, 100)
  let button = root.querySelector("button")
  if (!button) {
    button = document.createElement("button")
    button.type = "button"
    const said = document.createElement("span")
    said.setAttribute("role", "status")
    const address = document.createElement("input")
    address.readOnly = true
    address.hidden = true
    address.setAttribute("aria-label", "Link to this page with all its inputs")
    root.append(button, said, address)
  }
  const [, said, address] = root.children
  const link = `${location.origin}${location.pathname}?${data.query}`
  button.textContent = "Copy link to this page"
  button.dataset.link = link
  if (address.value !== link) {
    address.value = link
    said.textContent = ""
  }
  button.onclick = async () => {
    address.hidden = false
    try {
      await navigator.clipboard.writeText(link)
      said.textContent = "Copied: every input is in the link."
    } catch {
      // No clipboard permission (plain http, locked-down browser): the selected text can be copied by hand.
      address.focus()
      address.select()
      said.textContent = "Press Ctrl+C to copy."
    }
  }
}
