/** Configurations of the two nginx processes: the mock model server, and nginx as a contender. */

/** Address of a process, `ip:port`. */
export type HostPort = string

/** nginx never closes a connection because of its age: the measured work would include the reconnect. */
const KEEP = 'keepalive_requests 1000000000; keepalive_timeout 75s;'

/** A model server that answers every POST at once with the same bytes. */
export function mockConfig(listen: HostPort, answer: string): string {
  return config(`
    server {
      listen ${listen};
      location / { default_type application/json; return 200 '${answer}'; }
    }`)
}

/** One proxy of nginx as a contender. */
export interface ProxySite {
  readonly listen: HostPort
  readonly upstream: HostPort
}

/**
 * nginx as a gateway: refuses keys that are not in a map, and passes everything else on unbuffered.
 * @param keysFile lines of `"Bearer <key>" 1;`
 */
export function proxyConfig(keysFile: string, sites: readonly ProxySite[]): string {
  const servers = sites.map(
    ({ listen, upstream }, i) => `
    upstream mock${i} { server ${upstream}; keepalive 64; keepalive_requests 1000000000; }
    server {
      listen ${listen};
      location / {
        default_type application/json;
        if ($known = 0) { return 401 '{"error":{"message":"unknown API key"}}'; }
        proxy_pass http://mock${i};
        proxy_http_version 1.1;
        proxy_set_header Connection "";
        proxy_buffering off;
      }
    }`,
  )
  return config(`
    map_hash_max_size 131072;
    map_hash_bucket_size 256;
    map $http_authorization $known { default 0; include ${keysFile}; }${servers.join('')}`)
}

function config(http: string): string {
  return `user root;
daemon off;
worker_processes 1;
pid nginx.pid;
error_log error.log warn;
events { worker_connections 4096; }
http {
    access_log off;
    client_body_buffer_size 256k;
    client_max_body_size 40m;
    client_body_temp_path body;
    proxy_temp_path proxy;
    fastcgi_temp_path fastcgi;
    uwsgi_temp_path uwsgi;
    scgi_temp_path scgi;
    ${KEEP}${http}
}
`
}
