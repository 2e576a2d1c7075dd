package Bench::Session;

# A psql that stays connected, to be asked many small questions without the cost of starting one for each. A question is a
# transaction of its own: no snapshot is held between two of them.

use strict;
use warnings;

use IPC::Open2 qw(open2);

sub new
{
	my ($class, $postgres) = @_;
	my $self = bless { owner => $$ }, $class;
	local $ENV{PGTZ} = 'UTC';
	local $ENV{PGOPTIONS} = '-c client_min_messages=warning';
	$self->{pid} = open2($self->{out}, $self->{in}, $postgres->bindir . '/psql', '-XAtq', '-v', 'ON_ERROR_STOP=1', '-h', $postgres->host, '-p', $postgres->port,
		'-U', 'postgres', '-d', 'postgres');
	$self->{in}->autoflush(1);
	$self->ask('set synchronous_commit = off');
	return $self;
}

# Run SQL (without the semicolon); returns the output.
sub ask
{
	my ($self, $sql) = @_;
	my $end = 'end-of-answer-' . ++$self->{count};
	my $in = $self->{in};
	local $SIG{PIPE} = 'IGNORE';
	print $in "$sql;\n\\echo $end\n";
	my $answer = '';
	my $out = $self->{out};
	while (my $line = <$out>)
	{
		return $answer =~ s/\n\z//r if $line eq "$end\n";
		$answer .= $line;
	}
	die "psql ended at: $sql\n";
}

sub close
{
	my ($self) = @_;
	return unless $self->{pid} && $self->{owner} == $$;
	CORE::close($self->{in});
	CORE::close($self->{out});
	waitpid(delete $self->{pid}, 0);
	return;
}

sub DESTROY { local $?; $_[0]->close; return; }

1;
