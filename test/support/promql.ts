/** Reads the metrics and labels of PromQL queries by the grammar of Prometheus. */
import type { SyntaxNode } from '@lezer/common'
import { parser } from '@prometheus-io/lezer-promql'

/** One `name{label="value"}` of a query. */
export interface Selector {
  readonly metric: string
  readonly matchers: readonly Matcher[]
}

export interface Matcher {
  readonly label: string
  readonly operator: string
  /** Without quotes. */
  readonly value: string
}

export interface Query {
  readonly selectors: readonly Selector[]
  /** Labels of every `by (…)` and `on (…)`. */
  readonly grouping: readonly string[]
}

/** @throws SyntaxError with the place where the text is not PromQL */
export function readPromQL(text: string): Query {
  const query = { selectors: [] as Selector[], grouping: [] as string[] }
  const of = ({ from, to }: SyntaxNode): string => text.slice(from, to)
  const tree = parser.parse(text)
  tree.iterate({
    enter: ({ node, type, from }) => {
      if (type.isError) throw new SyntaxError(`no PromQL at character ${from} of ${text}`)
      if (type.name === 'VectorSelector') query.selectors.push(selectorOf(node, of))
      if (type.name === 'GroupingLabels') query.grouping.push(...node.getChildren('LabelName').map(of))
    },
  })
  if (text.slice(tree.length).trim() !== '') throw new SyntaxError(`no PromQL after character ${tree.length} of ${text}`)
  return query
}

function selectorOf(node: SyntaxNode, of: (node: SyntaxNode) => string): Selector {
  const name = node.getChild('Identifier')
  const matchers = node.getChild('LabelMatchers')?.getChildren('UnquotedLabelMatcher') ?? []
  return { metric: name ? of(name) : '', matchers: matchers.map((matcher) => matcherOf(matcher, of)) }
}

function matcherOf(node: SyntaxNode, of: (node: SyntaxNode) => string): Matcher {
  const part = (type: string): string => {
    const child = node.getChild(type)
    return child ? of(child) : ''
  }
  return { label: part('LabelName'), operator: part('MatchOp'), value: part('StringLiteral').slice(1, -1) }
}
