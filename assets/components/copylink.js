// "Copy link": puts the page's address with every field spelled out on the clipboard.
export default function ({ data, parentElement }) {
  const root = parentElement.querySelector(".root")
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
