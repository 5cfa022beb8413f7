import { read } from './documents.ts'

/** The ENTRYPOINT of the Dockerfile of a program: the Node binary, its flags, the bundle. */
export function entrypoint(program: 'gateway' | 'operator' | 'dashboard'): readonly string[] {
  const [, json = '[]'] = /^ENTRYPOINT (.*)$/m.exec(read(`${program}/Dockerfile`)) ?? []
  return JSON.parse(json) as string[] // written by us
}

/** Flags of Node in the image. Measured programs run with the same flags. */
export function imageFlags(program: 'gateway' | 'operator'): readonly string[] {
  return entrypoint(program).slice(1, -1)
}
