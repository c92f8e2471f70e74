// A real link (middle click and "open in new tab" work) that a plain click follows without loading the app again.
export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".root")
  let link = root.querySelector("a")
  if (!link) {
    link = document.createElement("a")
    root.append(link)
  }
  link.textContent = data.label
  link.href = data.href
  link.onclick = (event) => {
    if (event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return
    event.preventDefault()
    setTriggerValue("go", true)
  }
}
