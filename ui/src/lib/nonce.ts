/** What Tower's content security policy wants of `<style>` elements: another one with each answer. */
export const styleNonce = document.querySelector<HTMLMetaElement>('meta[property="csp-nonce"]')?.nonce ?? "";
