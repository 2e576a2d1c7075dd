package CdcBridge::HeldCommit;

# Source transactions that stand in the binary log and that no SELECT sees yet, for as long as a test likes: with semi-synchronous
# replication and no replica a commit waits after the binary log and before the engine. (Our own dump connection is not a
# semi-sync replica.)
#
#   my $source = CdcBridge::HeldCommit->source;
#   my $held = CdcBridge::HeldCommit->new($source, 'insert into ...', 'update ...');    # in the log, not visible
#   $held->release;                                                                      # visible

use strict;
use warnings;

use CdcBridge::Env qw(poll_until);
use CdcBridge::Source;
use POSIX ();
use Test::More;

# A server whose commits can be held. ARGS are further server options.
sub source
{
	my ($class, @args) = @_;
	my $source = CdcBridge::Source->new(args => [ @args, ($ENV{CDC_SOURCE} // 'mariadb') eq 'mysql' ? () :
			('--rpl-semi-sync-master-wait-point=AFTER_SYNC', '--rpl-semi-sync-master-wait-no-slave=ON', '--rpl-semi-sync-master-timeout=3600000') ]);
	$source->sql(q{install plugin rpl_semi_sync_source soname 'semisync_source.so'},
		'set global rpl_semi_sync_source_wait_point = AFTER_SYNC',
		'set global rpl_semi_sync_source_wait_no_replica = ON',
		'set global rpl_semi_sync_source_timeout = 3600000') if $source->is_mysql;
	return $source;
}

# Run STATEMENTS as one transaction in a process of its own; it hangs in its commit until release.
sub new
{
	my ($class, $source, @statements) = @_;
	my $self = bless { source => $source }, $class;
	my ($file, $offset) = $source->binlog_position;
	$self->_switch('ON');
	$self->{pid} = fork() // die "fork: $!";
	if (!$self->{pid})
	{
		my $dbh = $source->connect;
		$dbh->begin_work;
		$dbh->do($_) for @statements;
		$dbh->commit;
		POSIX::_exit(0);
	}
	poll_until(sub { my ($f, $o) = $source->binlog_position; return $o > $offset; }, 30) or die "the transaction did not reach the binary log\n";
	return $self;
}

sub release
{
	my ($self) = @_;
	$self->_switch('OFF');
	waitpid($self->{pid}, 0);
	is($?, 0, 'the held transaction commits');
	return;
}

sub _switch
{
	my ($self, $value) = @_;
	my $role = $self->{source}->is_mysql ? 'source' : 'master';
	$self->{source}->sql("set global rpl_semi_sync_${role}_enabled = $value");
	return;
}

1;
