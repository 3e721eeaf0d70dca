// Owns the requests to the server: the code that allows them, streams of JSON documents, one a line, and their repair.
// A stream is closed while nobody looks at the page. Tabs of the same server give each other the code.
"use strict";

const connection = (() => {
  const FIRST_PAUSE_MS = 500;
  const MAX_PAUSE_MS = 5000;
  // The server sends something each 15 s.
  const MAX_SILENCE_MS = 40000;
  const TOKEN = "token";
  // A link that is opened in another tab brings no code. Only pages from the same address and port get these messages.
  const tabs = location.protocol === "file:" ? null : new BroadcastChannel("code");
  let accepted = ""; // the code that the server has accepted

  class Refused extends Error {
    constructor(status, message, hint) {
      super(message);
      this.status = status;
      this.hint = hint;
    }
  }

  function useCode(code) {
    sessionStorage.setItem(TOKEN, code);
  }

  function receive({ data }) {
    if (data.isAsking && accepted) tabs.postMessage({ code: accepted });
    if (!data.code || !store.session.needsCode) return;
    useCode(data.code);
    app.start();
  }

  function accept(code) {
    if (code && code !== accepted) tabs?.postMessage({ code });
    accepted = code;
  }

  function refuse(code) {
    store.setSession({ needsCode: true, wrongCode: Boolean(code), failure: "" });
    accepted = "";
    if (!code) tabs?.postMessage({ isAsking: true });
  }

  async function request(path, options = {}) {
    const code = sessionStorage.getItem(TOKEN) ?? "";
    // A header has Latin letters only, and what is typed may have others.
    const headers = { ...options.headers, Authorization: `Bearer ${encodeURIComponent(code)}` };
    const answer = await fetch(path, { ...options, headers, cache: "no-store", credentials: "omit" });
    if (answer.ok) {
      accept(code);
      return answer;
    }
    if (answer.status === 401) refuse(code);
    const { message = `the server answers with status ${answer.status}`, hint = "" } = await answer
      .json()
      .catch(() => ({}));
    throw new Refused(answer.status, message, hint);
  }

  async function read(path) {
    return (await request(path)).json();
  }

  async function send(path, body) {
    await request(path, {
      method: "POST",
      body: JSON.stringify(body),
      headers: { "Content-Type": "application/json" },
    });
  }

  function environmentPath(environment) {
    const { namespace, environment: name } = environment;
    return `/api/environments/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`;
  }

  // Read a stream until it is closed, again after each end, and not while the page is hidden.
  // `handlers`: document(data) for each line; state("live" | "reconnecting" | "paused", the server's refusal);
  // opened(isAgain).
  // A stream that `isSteady` has something each 15 s; without it for long, it is opened again.
  class Stream {
    constructor(path, handlers, { isSteady = true } = {}) {
      this.path = path;
      this.handlers = handlers;
      this.isSteady = isSteady;
      this.pause = FIRST_PAUSE_MS;
      this.isAgain = false;
      this.onVisibility = () => (document.hidden ? this.suspend() : this.open());
      document.addEventListener("visibilitychange", this.onVisibility);
      if (document.hidden) this.suspend();
      else this.open();
    }

    close() {
      document.removeEventListener("visibilitychange", this.onVisibility);
      this.stop();
    }

    suspend() {
      this.stop();
      this.handlers.state("paused");
    }

    stop() {
      clearTimeout(this.timer);
      clearTimeout(this.watchdog);
      this.abort?.abort();
      this.abort = null;
    }

    async open() {
      this.stop();
      const abort = new AbortController();
      const opened = performance.now();
      this.abort = abort;
      let refusal = null;
      let isTurnOver = false;
      try {
        isTurnOver = await this.follow(abort);
      } catch (error) {
        if (error instanceof Refused) refusal = error;
      }
      if (this.abort !== abort) return undefined;
      this.stop();
      if (isTurnOver) return this.open();
      const isUnauthorized = refusal?.status === 401;
      this.handlers.state("reconnecting", isUnauthorized ? undefined : refusal?.message);
      // A wrong code is not tried again: signing in opens the stream.
      if (isUnauthorized) return undefined;
      // One that brings a failure and ends is not to be asked for again and again.
      if (performance.now() - opened > MAX_PAUSE_MS) this.pause = FIRST_PAUSE_MS;
      this.timer = setTimeout(() => this.open(), this.pause);
      this.pause = Math.min(this.pause * 2, MAX_PAUSE_MS);
      return undefined;
    }

    // Returns whether the stream made room for others: a browser opens six connections to a server.
    async follow(abort) {
      const answer = await request(this.path, { signal: abort.signal });
      this.handlers.opened?.(this.isAgain);
      this.handlers.state("live");
      this.isAgain = true;
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      let rest = "";
      for (;;) {
        this.watch(abort);
        const { value, done } = await reader.read();
        if (done || abort.signal.aborted) return false;
        const lines = (rest + value).split("\n");
        rest = lines.pop();
        for (const line of lines) {
          const data = line ? JSON.parse(line) : null;
          if (data?.topic === "turn") return true;
          if (data) this.handlers.document(data);
        }
      }
    }

    watch(abort) {
      clearTimeout(this.watchdog);
      if (!this.isSteady) return;
      this.watchdog = setTimeout(() => abort.abort(), MAX_SILENCE_MS);
    }
  }

  tabs?.addEventListener("message", receive);
  return { Stream, read, send, useCode, environmentPath };
})();
