// Calls a gateway by the official clients: node calls.mjs URL. What they return is printed as one JSON object.
import Anthropic from '@anthropic-ai/sdk'
import { Ollama } from 'ollama'
import OpenAI, { NotFoundError } from 'openai'

const url = process.argv[2]
const out = {}
const messages = [{ role: 'user', content: 'Hi' }]
const schema = { type: 'object', properties: { city: { type: 'string', maxLength: 20 }, rain: { type: 'boolean' } }, required: ['city', 'rain'], additionalProperties: false }
const parameters = { type: 'object', properties: { city: { type: 'string' } } }

const openai = new OpenAI({ baseURL: url + '/v1', apiKey: 'any', maxRetries: 0 })
{
  const tools = [{ type: 'function', function: { name: 'weather', parameters } }]
  const whole = await openai.chat.completions.create({ model: 'hello', messages, seed: 7, n: 2, logprobs: true, top_logprobs: 1 })
  let streamed = '', usage, tally
  for await (const c of await openai.chat.completions.create({ model: 'hello', messages, stream: true, stream_options: { include_usage: true } })) {
    streamed += c.choices[0]?.delta?.content ?? ''
    usage = c.usage ?? usage
    tally = c.tally ?? tally
  }
  const called = await openai.chat.completions.stream({ model: 'caller', messages, tools }).finalChatCompletion()
  const ran = await openai.chat.completions.runTools({
    model: 'asks', messages,
    tools: [{ type: 'function', function: { name: 'weather', parse: JSON.parse, function: ({ city }) => `rain in ${city}`, parameters } }],
  }).finalContent()
  const { parsed } = (await openai.chat.completions.parse({
    model: 'hello', messages, seed: 5,
    response_format: { type: 'json_schema', json_schema: { name: 'weather', strict: true, schema } },
  })).choices[0].message
  const formed = JSON.parse((await openai.responses.create({ model: 'hello', input: 'Hi', text: { format: { type: 'json_schema', name: 'weather', strict: true, schema } } })).output_text)
  const forced = await openai.chat.completions.create({ model: 'hello', messages, tools, tool_choice: { type: 'function', function: { name: 'weather' } } })
  const unfit = await openai.chat.completions.create({ model: 'hello', messages, response_format: { type: 'json_schema', json_schema: { name: 'x', schema: { not: {} } } } }).catch(e => e)
  const missing = await openai.chat.completions.create({ model: 'none', messages }).catch(e => e)
  const completion = await openai.completions.create({ model: 'plain', prompt: 'Once' })
  const vectors = await openai.embeddings.create({ model: 'vectors', input: ['a', 'bcd'] })
  const short = await openai.embeddings.create({ model: 'vectors', input: 'a', dimensions: 1, encoding_format: 'float' })
  const response = await openai.responses.create({ model: 'hello', input: 'Hi', instructions: 'Be brief.' })
  const types = []
  let told = ''
  for await (const e of await openai.responses.create({ model: 'hello', input: 'Hi', stream: true })) {
    types.push(e.type)
    if (e.type === 'response.output_text.delta') told += e.delta
  }
  const models = []
  for await (const m of openai.models.list()) models.push(m.id)
  out.openai = {
    whole: whole.choices.map(c => c.message.content), seed: whole.tally.seed, logprob: whole.choices[0].logprobs.content[0].logprob,
    streamed, usage: usage.completion_tokens, drawn: Number.isSafeInteger(tally.seed),
    called: called.choices[0].message.tool_calls[0].function, reason: called.choices[0].finish_reason, ran,
    parsed: [Object.keys(parsed), typeof parsed.city, typeof parsed.rain], formed: Object.keys(formed),
    forced: [forced.choices[0].finish_reason, forced.choices[0].message.tool_calls[0].function.name], unfit: [unfit.status, unfit.code, unfit.param],
    missing: [missing instanceof NotFoundError, missing.code, missing.param, missing.requestID !== undefined],
    completion: completion.choices[0].text, vectors: vectors.data.map(d => Array.from(d.embedding)), short: short.data[0].embedding, used: vectors.usage.total_tokens > 1,
    response: response.output_text, told, first: types[0], last: types.at(-1),
    models, model: (await openai.models.retrieve('hello')).id,
  }
}

const anthropic = new Anthropic({ baseURL: url, apiKey: 'any', maxRetries: 0 })
{
  const ask = { model: 'hello', max_tokens: 100, messages }
  const tools = [{ name: 'weather', input_schema: parameters }]
  const whole = await anthropic.messages.create(ask, { headers: { 'Tally-Seed': '9' } })
  const stream = anthropic.messages.stream({ ...ask, model: 'caller', tools })
  let streamed = ''
  stream.on('text', t => { streamed += t })
  const final = await stream.finalMessage()
  const missing = await anthropic.messages.create({ ...ask, model: 'none' }).catch(e => e)
  out.anthropic = {
    whole: whole.content[0].text, reason: whole.stop_reason, seed: whole.tally.seed,
    streamed, called: final.content[1].input, called_reason: final.stop_reason, output: final.usage.output_tokens,
    count: (await anthropic.messages.countTokens({ model: 'hello', messages })).input_tokens,
    missing: [missing.status, missing.error.error.type],
  }
}

const ollama = new Ollama({ host: url })
{
  const whole = await ollama.chat({ model: 'hello', messages, options: { seed: 3 } })
  let streamed = '', last
  for await (const c of await ollama.chat({ model: 'hello', messages, stream: true })) {
    streamed += c.message.content
    last = c
  }
  let generated = ''
  for await (const c of await ollama.generate({ model: 'hello', prompt: 'Hi', stream: true })) generated += c.response
  const called = await ollama.chat({ model: 'caller', messages, tools: [{ type: 'function', function: { name: 'weather', parameters } }] })
  const missing = await ollama.chat({ model: 'none', messages }).catch(e => e)
  const formed = await ollama.chat({ model: 'hello', messages, format: schema })
  const pulled = []
  for await (const p of await ollama.pull({ model: 'new', stream: true })) pulled.push(p.status)
  out.ollama = {
    whole: whole.message.content, seed: whole.tally.seed, streamed, done: [last.done, last.done_reason, last.eval_count], generated,
    called: called.message.tool_calls[0].function.arguments, missing: [missing.status_code, missing.message],
    formed: Object.keys(JSON.parse(formed.message.content)),
    tags: (await ollama.list()).models.map(m => m.name), show: (await ollama.show({ model: 'hello' })).details.family,
    ps: (await ollama.ps()).models.length, version: (await ollama.version()).version, pulled,
    embed: (await ollama.embed({ model: 'vectors', input: ['abc'] })).embeddings, cut: (await ollama.embed({ model: 'vectors', input: 'abc', truncate: true, dimensions: 1 })).embeddings, embedding: (await ollama.embeddings({ model: 'vectors', prompt: 'ab' })).embedding,
  }
}

console.log(JSON.stringify(out))
