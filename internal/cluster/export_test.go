package cluster

// SetJudge gives a core without a detector its opinion of the others.
func (k *Core) SetJudge(j Judge) { k.judge = j }
