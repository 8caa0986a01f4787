// A page opened from the disk may start no worker, and the search is one. This runs it in a hidden frame instead.
if (location.protocol === "file:")
  window.Worker = class extends EventTarget {
    constructor(url) {
      super()
      this.frame = document.createElement("iframe")
      this.frame.hidden = true
      this.frame.tell = (said) => this.dispatchEvent(new MessageEvent("message", { data: said }))
      this.frame.srcdoc = `<script>postMessage = frameElement.tell</script><script src="${url}"></script>`
      this.loaded = new Promise((done) => this.frame.addEventListener("load", done))
      document.body.append(this.frame)
    }

    postMessage(said) {
      this.loaded.then(() => this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data: said })))
    }
  }
