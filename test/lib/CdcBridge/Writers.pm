package CdcBridge::Writers;

# Sessions that write at random beside a test until it ends them.
#
#   my $writers = CdcBridge::Writers->new(postgres => $postgres, seed => $seed, batch => 20, sql => \&one_transaction);
#   $writers->start(8);      # each makes its own random choices; start(2, 10): numbers 11 and 12 of the seed
#   $writers->end;           # and wait until the server has done with their last statements
#
# sql is called in the writer's process, with its number and the number of the transaction, and gives the text of one transaction.

use strict;
use warnings;

sub new
{
	my ($class, %option) = @_;
	return bless { batch => 5, pids => [], %option }, $class;
}

sub start
{
	my ($self, $n, $first) = @_;
	push @{ $self->{pids} }, map { $self->_start_one(($first // 0) + $_) } 1 .. $n;
	return $self;
}

# A writer dies with the test. Deadlocks, and a server that is gone, undo the transaction; then comes another one.
sub _start_one
{
	my ($self, $writer) = @_;
	my $pid = fork() // die "fork: $!";
	return $pid if $pid;
	srand($self->{seed} + $writer);
	$SIG{PIPE} = 'IGNORE';
	my $seq = 1;
	for (;;)
	{
		$self->{postgres}->try_psql(join('', map { $self->{sql}->($writer, $seq) } 1 .. $self->{batch}));
		exit(0) if getppid() == 1;
		$seq++;
	}
}

# Without a wait: the server may be gone.
sub kill_all
{
	my ($self) = @_;
	kill('KILL', @{ $self->{pids} });
	waitpid($_, 0) for @{ $self->{pids} };
	$self->{pids} = [];
	return $self;
}

sub end
{
	my ($self) = @_;
	$self->kill_all;
	$self->{postgres}->poll("select count(*) from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid()", '0');
	return $self;
}

1;
