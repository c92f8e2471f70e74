// "Copy link": puts the page's address with every field spelled out on the clipboard. Standing on every page, it also
// keeps the browser's history to one entry a page, redraws the page when the theme is switched, and serves the tables.

// Streamlit pushes a history entry for every single field that changes, so that Back would undo a preset field by
// field. Pushes that stay on the page replace its entry instead: Back then leaves the page, and finds the inputs of
// the page before as they were. On leaving, Streamlit first drops a page's fields from its address; they are put back.
function oneEntryAPage() {
  if (history.napkin) return
  history.napkin = true
  const push = history.pushState.bind(history)
  let path = location.pathname
  let dropped = null
  history.pushState = (state, unused, url) => {
    const target = new URL(url ?? location.href, location.href)
    if (target.pathname === location.pathname) {
      const fewer = target.searchParams.size < new URLSearchParams(location.search).size
      dropped = fewer ? { state: history.state, href: location.href, at: performance.now() } : null
      history.replaceState(state, unused, url)
    } else {
      if (dropped && performance.now() - dropped.at < 3000) history.replaceState(dropped.state, "", dropped.href)
      dropped = null
      push(state, unused, url)
    }
    path = location.pathname
  }
  // A link that spells out defaults loads as two entries, as written and shortened; Back passes over the first.
  // Streamlit answers the same event and may rewrite the address meanwhile, which stops the step back: then once more.
  let again = 0
  addEventListener("pagehide", () => clearTimeout(again))
  addEventListener("popstate", () => {
    clearTimeout(again)
    if (location.pathname === path) {
      history.back()
      again = setTimeout(() => history.back(), 800)
    }
    path = location.pathname
  })
}

export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".root")
  oneEntryAPage()
  sortAndDownloadTables()
  // The app's own style follows a moment after this call. Asking once per theme is enough, and cannot go in circles.
  setTimeout(() => {
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
