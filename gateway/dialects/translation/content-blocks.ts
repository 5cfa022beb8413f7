/** Content blocks of the Messages API as parts of a chat message. A block that cannot be translated is refused by its position. */
import { GatewayError } from '../../errors.ts'
import { asObject, type JsonObject } from '../json-body.ts'
import { invalid } from '../request-shape.ts'
import type { Changes } from './changes.ts'

export interface TextPart {
  readonly type: 'text'
  readonly text: string
}
export interface ImagePart {
  readonly type: 'image_url'
  readonly image_url: { readonly url: string }
}
export type ChatPart = TextPart | ImagePart

/** Text of a chat message, or its parts if it has an image. Many chat templates take a text only. */
export type ChatContent = string | readonly ChatPart[]

/** Row 15. @param field position of a value, such as `messages.2.content.0` */
export function unsupported(field: string, reason: string): GatewayError {
  return new GatewayError('untranslatable', { field, reason })
}

/** The blocks of a `content` field. @throws GatewayError, row 11 */
export function blocksOf(content: unknown, field: string): readonly JsonObject[] {
  if (typeof content === 'string') return [{ type: 'text', text: content }]
  if (!Array.isArray(content)) throw invalid(field, 'must be a string or an array of blocks')
  return content.map((block, index) => {
    const value = asObject(block)
    if (value === undefined) throw invalid(`${field}.${index}`, 'must be an object')
    return value
  })
}

/** @throws GatewayError, row 11 */
export function textIn(block: JsonObject, name: string, field: string): string {
  const text = block[name]
  if (typeof text !== 'string') throw invalid(`${field}.${name}`, 'must be a string')
  return text
}

/** Names what a chat completion has no place for, and what does not change the meaning of a block. */
export function noteBlock({ cache_control: cache, citations }: JsonObject, changes: Changes): void {
  if (cache !== undefined && cache !== null) changes.drop('cache_control')
  if (citations !== undefined && citations !== null) changes.drop('citations')
}

/** A block of a user, as a part. @throws GatewayError, rows 11 and 15 */
export function userPart(block: JsonObject, field: string, changes: Changes): ChatPart {
  noteBlock(block, changes)
  switch (block.type) {
    case 'text':
      return textPart(textIn(block, 'text', field))
    case 'image':
      return imagePart(block, field)
    case 'document':
      return textPart(documentText(block, field))
    case 'search_result':
      return textPart(searchResultText(block, field))
    default:
      throw unsupported(field, `has a block of type ${shownType(block)}, which a chat completion cannot express`)
  }
}

export function textPart(text: string): TextPart {
  return { type: 'text', text }
}

/** @returns a text if there is no image */
export function contentOf(parts: readonly ChatPart[]): ChatContent {
  if (parts.every(isText)) return parts.map(({ text }) => text).join('\n')
  return parts.filter((part) => !isText(part) || part.text !== '')
}

function isText(part: ChatPart): part is TextPart {
  return part.type === 'text'
}

/** The server fetches the URL of an image or refuses it; the gateway never does. */
export function imagePart(block: JsonObject, field: string): ImagePart {
  const source = asObject(block.source) ?? {}
  const at = `${field}.source`
  if (source.type === 'url') return { type: 'image_url', image_url: { url: textIn(source, 'url', at) } }
  if (source.type !== 'base64') throw unsupported(at, `must be base64 or url, and is ${shownType(source)}`)
  const url = `data:${textIn(source, 'media_type', at)};base64,${textIn(source, 'data', at)}`
  return { type: 'image_url', image_url: { url } }
}

/** A document of text, with its title and context before it. A PDF or a file is refused and never left out. */
function documentText(block: JsonObject, field: string): string {
  const source = asObject(block.source) ?? {}
  const heading = [block.title, block.context].filter((text) => typeof text === 'string' && text !== '')
  return [...heading, sourceText(source, `${field}.source`)].join('\n')
}

function sourceText(source: JsonObject, field: string): string {
  if (source.type === 'text') return textIn(source, 'data', field)
  if (source.type !== 'content')
    throw unsupported(field, `is a document of type ${shownType(source)}; only documents of text can be sent to this model`)
  return plainText(source.content, `${field}.content`)
}

function searchResultText(block: JsonObject, field: string): string {
  const heading = [block.source, block.title].filter((text) => typeof text === 'string' && text !== '')
  return [...heading, plainText(block.content, `${field}.content`)].join('\n')
}

function plainText(content: unknown, field: string): string {
  return plainTexts(blocksOf(content, field), field).join('\n')
}

/** The texts of blocks that may be text only. */
export function plainTexts(blocks: readonly JsonObject[], field: string): string[] {
  return blocks.map((block, index) => {
    if (block.type !== 'text') throw unsupported(`${field}.${index}`, `must be text, and is ${shownType(block)}`)
    return textIn(block, 'text', `${field}.${index}`)
  })
}

/** The type of a block for an error message: the client's own word, if it is harmless. */
export function shownType({ type }: JsonObject): string {
  return typeof type === 'string' && /^[\w.-]{1,64}$/.test(type) ? type : 'unknown'
}
