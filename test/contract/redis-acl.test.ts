/** The code defines the rights of the Redis users once. The texts that administrators copy and the chart give the same rights. */
import { expect, test } from 'vitest'
import { gatewayAcl, operatorAcl } from '../support/redis-acl.ts'
import { read } from '../support/documents.ts'

test.each(['test/parts/redis-users.acl', 'gateway/README.md', 'charts/headgate/README.md'])(
  '%s gives gateways the rights that the code names',
  (path) => {
    const rules = read(path).match(/^user gateway on >\S+ (.*)$/m)?.[1]
    expect(rules).toBe(gatewayAcl('hg'))
  },
)

test('the Redis of the chart gives both users the rights that the code names', () => {
  const template = read('charts/headgate/templates/redis/trial.yaml')
  const rules = (user: string): string | undefined =>
    new RegExp(`printf "user ${user} on #%s (.*?)"`).exec(template)?.[1]?.replaceAll('%s', 'hg').replaceAll('%%', '%')
  expect(rules('gateway')).toBe(gatewayAcl('hg'))
  expect(rules('operator')).toBe(operatorAcl('hg'))
})

test('test/parts/redis-users.acl gives the operator the rights that the code names', () => {
  expect(read('test/parts/redis-users.acl').match(/^user operator on >\S+ (.*)$/m)?.[1]).toBe(operatorAcl('hg'))
})
