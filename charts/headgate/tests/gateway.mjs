// What `helm test` runs in a pod with the gateway's image: the checks print one line each, and the first that fails ends the pod with code 1.
const { GATEWAY_URL, METRICS_URL, SERVICE_API_KEY, MODEL } = process.env
const authorization = SERVICE_API_KEY ? { authorization: `Bearer ${SERVICE_API_KEY}` } : {}

async function call(what, url, expected, { body, headers } = {}) {
  const method = body ? 'POST' : 'GET'
  const signal = AbortSignal.timeout(30_000)
  const json = body ? { 'content-type': 'application/json' } : {}
  const answer = await fetch(url, { method, signal, headers: { ...json, ...headers }, body: body && JSON.stringify(body) })
  const text = await answer.text()
  if (answer.status !== expected) throw new Error(`${method} ${url} answered ${answer.status}, not ${expected}: ${text.slice(0, 500)}`)
  console.log(`ok: ${what} (${method} ${url}: ${answer.status})`)
  return text
}

try {
  await call('a gateway pod is ready', `${METRICS_URL}/readyz`, 200)
  await call('the gateway answers', `${GATEWAY_URL}/`, 200)
  await call('a call without a key is refused', `${GATEWAY_URL}/v1/models`, 401)
  if (SERVICE_API_KEY) {
    const models = JSON.parse(await call('the key is accepted', `${GATEWAY_URL}/v1/models`, 200, { headers: authorization }))
    const model = MODEL || models.data[0]?.id
    if (!model) throw new Error('the key may call no model: apply a ServedModel whose name is in spec.models of the ApiKey')
    const body = { model, max_tokens: 16, messages: [{ role: 'user', content: 'Good morning!' }] }
    const text = await call(`model ${model} answers`, `${GATEWAY_URL}/v1/chat/completions`, 200, { headers: authorization, body })
    if (!Array.isArray(JSON.parse(text).choices)) throw new Error(`model ${model} sent no choices: ${text.slice(0, 500)}`)
  } else {
    console.log('skipped: no model was called; set tests.keySecret to the Secret of an ApiKey in this namespace')
  }
} catch (error) {
  console.error(`failed: ${error.message}${error.cause ? ` (${error.cause.message})` : ''}`)
  process.exitCode = 1
}
