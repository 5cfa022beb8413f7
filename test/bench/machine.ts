/** The machine and the programs of a run, so that a reader can repeat the run. */
import { execFileSync } from 'node:child_process'
import { release, availableParallelism } from 'node:os'
import { loadAverage, cpuModel } from './proc.ts'

/** The record that a report begins with. */
export interface Machine {
  readonly date: string
  /** Commit of the clone; `+ changes` when the work tree differs. */
  readonly commit: string
  readonly cpu: string
  readonly cores: number
  readonly kernel: string
  /** Programs and their versions. */
  readonly versions: Readonly<Record<string, string>>
  /** Load average of the last minute before the run. */
  readonly loadAverage: number
}

const ROOT = `${import.meta.dirname}/../..`

/** Describes this machine; call it before any program is started. */
export function describeMachine(): Machine {
  return {
    date: new Date().toISOString(),
    commit: commit(),
    cpu: cpuModel(),
    cores: availableParallelism(),
    kernel: release(),
    versions: {
      node: process.version,
      undici: packageVersion('undici'),
      express: packageVersion('express'),
      nginx: said('nginx', '-v', /nginx\/(\S+)/),
      wrk: said('wrk', '-v', /wrk (\S+)/),
      redis: said('redis-server', '--version', /v=(\S+)/),
    },
    loadAverage: loadAverage(),
  }
}

function commit(): string {
  const git = (...args: string[]): string => output('git', ['-C', ROOT, ...args]).trim()
  const head = git('rev-parse', '--short=12', 'HEAD') || 'unknown'
  return git('status', '--porcelain') === '' ? head : `${head} + changes`
}

function packageVersion(name: string): string {
  const manifest = output(process.execPath, ['-p', `require('${name}/package.json').version`])
  return manifest.trim() || 'unknown'
}

function said(program: string, flag: string, version: RegExp): string {
  return version.exec(output(program, [flag]))?.[1] ?? 'unknown'
}

/** What a program prints, on either stream and whatever its exit code; some print their version to stderr, wrk exits with 1. */
function output(program: string, args: readonly string[]): string {
  const script = '"$0" "$@" 2>&1 || true'
  return execFileSync('bash', ['-c', script, program, ...args], { cwd: ROOT, encoding: 'utf8' })
}
