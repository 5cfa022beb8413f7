import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { beforeEach, expect, it } from 'vitest'
import { entrypoint } from '../support/image-flags.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

/** Targets of the COPY lines after the last FROM, with the build arguments filled in, sorted. */
function copiedFiles(dockerfile: string): readonly string[] {
  const stage = dockerfile.slice(dockerfile.lastIndexOf('\nFROM '))
  const values = new Map([...stage.matchAll(/^ARG (\w+)=(.*)$/gm)].map(([, name = '', value = '']) => [name, value]))
  const targets = [...stage.matchAll(/^COPY --from=build \S+ (\S+)$/gm)].map(([, target = '']) =>
    target.replaceAll(/\$\{(\w+)\}/g, (_, name: string) => values.get(name) ?? `unknown ${name}`),
  )
  return targets.toSorted()
}

beforeEach(({ skip }) => {
  skip(process.arch !== 'x64', 'the Dockerfile names the libraries of x86-64; other machines build with other arguments')
})

it.each(['gateway', 'operator', 'dashboard'])(
  'the Dockerfile of the %s copies exactly the files of the image that the cluster tests run',
  (program) => {
    const packed = execFileSync('bash', ['test/parts/images.sh', 'files', program], { cwd: ROOT, encoding: 'utf8' }).trim().split('\n')
    expect(copiedFiles(readFileSync(`${ROOT}/${program}/Dockerfile`, 'utf8'))).toEqual(packed.toSorted())
  },
)

it.each(['gateway', 'operator', 'dashboard'] as const)(
  'the %s starts in the same way in the image of the Dockerfile and in the image of the cluster tests, without a debugger',
  (program) => {
    const started = entrypoint(program)
    expect([started[0], started[1], started.at(-1)]).toEqual(['/usr/local/bin/node', '--disable-sigusr1', `/app/${program}.js`])
    const config = execFileSync('bash', ['test/parts/images.sh', 'config', program], { cwd: ROOT, encoding: 'utf8' })
    expect(JSON.parse(config)).toMatchObject({ Entrypoint: started, User: '65532:65532' })
  },
)
