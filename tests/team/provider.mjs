// An OpenID Connect provider for tests: whoever types a name is that person. Arguments: its port, the app's base URL.
// Each line on standard input is JSON, claims by which those of the next ID tokens are replaced: {} for none.
import { createInterface } from "node:readline"
import { SignJWT, decodeJwt, exportJWK, generateKeyPair } from "jose"
import { Provider, interactionPolicy } from "oidc-provider"

const [port, app] = process.argv.slice(2)
const { privateKey } = await generateKeyPair("RS256", { extractable: true })
const key = { ...(await exportJWK(privateKey)), kid: "one", use: "sig", alg: "RS256" }

let forged = {}
createInterface({ input: process.stdin }).on("line", line => {
  forged = JSON.parse(line)
  console.log("forging")
})

const policy = interactionPolicy.base()
policy.add(new interactionPolicy.Prompt({ name: "select_account", requestable: true }), 0)

const provider = new Provider(`http://127.0.0.1:${port}`, {
  clients: [{
    client_id: "napkin",
    client_secret: "s",
    redirect_uris: [`${app}/oauth2callback`],
    post_logout_redirect_uris: [`${app}/oauth2callback`],
  }],
  jwks: { keys: [key] },
  cookies: { keys: ["one"] },
  claims: { openid: ["sub"], profile: ["name"], email: ["email"] },
  conformIdTokenClaims: false,
  features: { devInteractions: { enabled: false }, revocation: { enabled: true } },
  interactions: { policy, url: (_, interaction) => `/interaction/${interaction.uid}` },
  findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id, ...(id.includes("@") ? { email: id } : { name: id }) }) }),
  pkce: { required: () => false },
})

const FORM = `<!doctype html><title>Who are you?</title><h1>Who are you?</h1>
<form method="post"><label>Name <input name="name" autofocus></label><button>Continue</button>
<button name="cancel" value="yes">Cancel</button></form>`

async function sent(request) {
  let text = ""
  for await (const part of request) text += part
  return new URLSearchParams(text)
}

async function asked(ctx) {
  const { prompt, session, params } = await provider.interactionDetails(ctx.req, ctx.res)
  if (prompt.name === "consent") {
    const grant = new provider.Grant({ accountId: session.accountId, clientId: params.client_id })
    grant.addOIDCScope(params.scope)
    return { consent: { grantId: await grant.save() } }
  }
  if (ctx.method !== "POST") return null
  const answer = await sent(ctx.req)
  if (answer.get("cancel")) return { error: "access_denied", error_description: "cancelled" }
  return { login: { accountId: answer.get("name") }, select_account: {} }
}

provider.use(async (ctx, next) => {
  if (ctx.path.startsWith("/interaction/")) {
    const result = await asked(ctx)
    if (result === null) {
      ctx.type = "html"
      ctx.body = FORM
    } else {
      ctx.respond = false
      await provider.interactionFinished(ctx.req, ctx.res, result, { mergeWithLastSubmission: true })
    }
    return
  }
  await next()
  if (ctx.path === "/token" && ctx.body?.id_token && Object.keys(forged).length) {
    const claims = { ...decodeJwt(ctx.body.id_token), ...forged }
    ctx.body.id_token = await new SignJWT(claims).setProtectedHeader({ alg: "RS256", kid: "one" }).sign(privateKey)
  }
})

provider.listen(Number(port), "127.0.0.1", () => console.log("listening"))
