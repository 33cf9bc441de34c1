/** Addresses of pages. Names come from outside, and may hold anything. */
export const link = {
  service: (name: string, tab = "") => `/services/${encodeURIComponent(name)}${tab && `/${tab}`}`,
  version: (name: string, number: number) => link.service(name, `versions/${number}`),
  activate: (name: string, number: number) => link.service(name, `versions/${number}/activate`),
  diff: (name: string, from: number, to: number) => link.service(name, `diff?from=${from}&to=${to}`),
  activation: (id: string) => `/activations/${encodeURIComponent(id)}`,
  host: (name: string, query = "") => `/hosts/${encodeURIComponent(name)}${query}`,
  entry: (index: number) => `/activity/${index}`,
  activityOf: (service: string) => `/activity?service=${encodeURIComponent(service)}`,
};
