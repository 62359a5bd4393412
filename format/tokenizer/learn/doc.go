// Package learn makes tokenizers of texts: byte-level BPE, cut into words by GPT-2's expression.
//
// Make [Words], let [Words.Read] count those of each text, and call [Words.Train]. [Trained.Encoded] is the tokenizer.json.
//
// Invariants: what is learnt follows from how often each word occurs, and from nothing else: no order of words or
// texts counts. Memory grows with the distinct words, and not with the texts.
//
// Sources: Sennrich, Haddow and Birch, arXiv 1508.07909; BpeTrainer of Hugging Face's tokenizers, whose ties are broken in the
// same way: the most frequent pair first, and of equal ones that with the smaller ids. It differs in two places. A pair of which more
// is found after it was queued is merged everywhere at once, where BpeTrainer merges it in two steps. Words of more than
// MaxWord bytes teach nothing.
package learn
